"""A rule in meta-training is the rule in use: the same parameters after the same batches."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attractor.meta import Learners, MetaTrainer, Problem
from attractor.meta.unroll import Position, first_order, second_order
from attractor.models import MLP
from attractor.optimisers import Rule, attach
from attractor.tasks import Batch
from contracts.optimisers import NAMES
from meta.test_unroll import DOUBLE, make

UPDATES, LEARNERS = 8, 2
SCALES = (0.1, 0.02, 3.0, 0.5)
"""Of the tensors of a network: each starts with another spread."""


def model(generator: torch.Generator) -> nn.Module:
    made = MLP([64, 3, 10], activation="tanh", generator=generator, dtype=torch.float64)
    for parameter, scale in zip(made.parameters(), SCALES, strict=True):
        parameter.data *= scale
    return made


PROBLEM = Problem(model, DOUBLE, 6)


def learners(count: int = LEARNERS, **options: Any) -> Learners:
    return Learners(PROBLEM, count, generator=torch.Generator().manual_seed(4), **options)


def in_use(rule: Rule) -> Tensor:
    """The parameters of each learner, updated by an optimiser of its own."""
    made = learners()
    nets = [copy.deepcopy(made.judged.network) for _ in range(LEARNERS)]
    for net, start in zip(nets, made.start, strict=True):
        nn.utils.vector_to_parameters(start.clone(), net.parameters())
    optimisers = [attach(rule, net) for net in nets]
    for _ in range(UPDATES):
        batch = made.draw()
        for k, (net, optimiser) in enumerate(zip(nets, optimisers, strict=True)):
            optimiser.zero_grad()
            loss = DOUBLE.loss(net, Batch(batch.x[k], batch.y[k]))
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step(loss.item)  # some heed it
    return torch.stack([nn.utils.parameters_to_vector(net.parameters()).detach() for net in nets])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("engine", [first_order, second_order])
def test_learners_at_once(name: str, engine: Any) -> None:
    rule = make(name)
    expected = in_use(rule)
    made = learners()
    start = Position(made.start, made.first_state(rule, made.start), made.draw())
    found = engine(rule, made, start, torch.zeros(UPDATES, 1, 1).double()).end.params
    assert not torch.equal(found, made.start)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_pairs_of_evolution(name: str) -> None:
    """Under moves too small to be seen, both of a pair are learners in use."""
    rule = make(name)
    expected = in_use(rule)
    trainer = MetaTrainer(
        rule,
        [PROBLEM],
        estimator="pes",
        pairs=1,
        steps=UPDATES,
        unroll=UPDATES,
        sigma=1e-13,
        generator=torch.Generator(),
    )
    (pair,) = trainer.estimator.pairs
    pair.learners = learners(1, copies=2)
    whole = learners()  # whose batches come in turns, the first learner's first
    pair.learners.start[:] = whole.start[0]
    drawn = [whole.draw() for _ in range(UPDATES + 1)]
    turns = iter([b[torch.tensor([0, 0])] for b in drawn])
    pair.learners.draw = lambda: next(turns)
    state = pair.learners.first_state(rule, pair.learners.start)
    pair.position = Position(pair.learners.start, state, pair.learners.draw())
    pair.stretch(trainer.estimator)
    torch.testing.assert_close(pair.position.params[0], expected[0], rtol=0, atol=1e-8)
    torch.testing.assert_close(pair.position.params[1], expected[0], rtol=0, atol=1e-8)
