"""Learners at random: what is drawn, what becomes of it in training, and going on after a stop."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Generator

from attractor.errors import InputError
from attractor.experiments.kinds.supervised import meta_training
from attractor.experiments.table import load
from attractor.experiments.train import runs_of
from attractor.meta import Distribution, Learners, MetaTrainer, Problem
from attractor.meta.fewer import Fewer
from attractor.meta.unroll import Position, follow
from attractor.models import MLP
from attractor.optimisers import DMSGD, MetaSGD
from attractor.runs.drive import Context
from attractor.tasks import Digits, Judged, Quadratic
from meta.test_trainer import generator, weights

DIGITS = Digits(order="flat", side=2)


def make(width: int = 3, batch_size: int = 4, **options: Any) -> Problem:
    def model(generator: Generator) -> MLP:
        return MLP([4, width, 10], generator=generator)

    return Problem(model, DIGITS, batch_size, **options)


def random() -> Distribution:
    stretch = {"from": 0.1, "to": 10.0}
    size, samples = [3, 5], {"from": 4, "to": 90}
    width = {"from": 2, "to": 40}
    return Distribution(make, width=width, batch_size=size, stretch=stretch, samples=samples)


def test_values_are_drawn_from_lists_and_ranges() -> None:
    nothing: Any = dict
    some = Distribution(
        nothing, a=[1, "b"], n={"from": 4, "to": 64}, x={"inner": {"from": 0.5, "to": 2.0}}
    )
    drawn = [some.draw(g) for g in [generator()] for _ in range(300)]
    assert {one["a"] for one in drawn} == {1, "b"}
    numbers = torch.tensor([one["n"] for one in drawn])
    assert numbers.dtype == torch.int64
    assert (numbers.min() >= 4) & (numbers.max() <= 64)
    assert 0.4 < (numbers < 16).double().mean() < 0.6  # evenly on a logarithmic scale
    inner = torch.tensor([one["x"]["inner"] for one in drawn])
    assert (inner >= 0.5).all()
    assert (inner <= 2).all()
    assert some.draw(generator()) == drawn[0]


@pytest.mark.parametrize(
    "choice", [[], 8, {}, {"from": 8}, {"from": 9, "to": 8}, {"from": 0, "to": 8}]
)
def test_what_is_no_choice_is_refused(choice: Any) -> None:
    with pytest.raises(InputError, match="expected model.*to be a list to choose from, or a range"):
        Distribution(make, model=choice if isinstance(choice, list | int) else {"width": choice})


@pytest.mark.parametrize("estimator", ["bptt", "pes"])
def test_every_learner_is_drawn_anew_and_a_training_goes_on(estimator: Any) -> None:
    def trainer() -> MetaTrainer:
        rule = DMSGD(hidden_size=2, generator=generator())
        count: Any = {"learners": 6} if estimator == "bptt" else {"updates": 8, "pairs": 2}
        return MetaTrainer(
            rule,
            [random(), make()],
            estimator=estimator,
            steps=4,
            unroll=2,
            generator=generator(),
            **count,
        )

    whole = trainer()
    seen = set[int]()
    while not whole.done:
        whole.advance()
        now = getattr(whole.estimator, "learners", None)
        pairs = [one.learners for one in getattr(whole.estimator, "pairs", [])]
        seen |= {one.start.shape[1] for one in [*pairs, now] if one is not None}
    assert len(seen) > 2
    for stop in (1, 3):
        part, rest = trainer(), trainer()
        for _ in range(stop):
            part.advance()
        rest.load_state_dict(part.state_dict())
        while not rest.done:
            rest.advance()
        assert torch.equal(weights(rest.rule), weights(whole.rule))


def test_learners_see_some_of_the_data_and_go_on_with_the_same() -> None:
    """Of a problem with samples: so many of them, others for other learners, noise and all."""
    task = Judged(Digits(order="flat"), torch.nn.functional.cross_entropy)
    problem = Problem(lambda g: MLP([64, 2, 10], generator=g), task, 4, samples=9)
    one, other = (Learners(problem, 2, generator=generator(seed)) for seed in (0, 1))

    def seen(learners: Learners) -> torch.Tensor:
        shown: Any = torch.cat([learners.draw().x.flatten(0, 1) for _ in range(9)])
        kinds: torch.Tensor
        kinds, count = shown.unique(dim=0, return_counts=True)
        assert count.tolist() == [8] * 9
        return kinds

    first = seen(one)
    assert not torch.equal(first, seen(other))
    one.draw()
    other.sampler.load_state_dict(one.sampler.state_dict())
    assert torch.equal(one.draw().x, other.draw().x)
    assert torch.equal(other.sampler.chosen, one.sampler.chosen)  # type: ignore[attr-defined]
    few = Fewer(Digits(), 10**6, 4, generator=generator())
    assert few.chosen.sort().values.tolist() == list(range(len(Digits())))


@pytest.mark.parametrize("samples", [0, 2.5])
def test_a_number_of_samples_is_checked(samples: Any) -> None:
    with pytest.raises(InputError, match="samples to be"):
        Fewer(Digits(), samples, 4, generator=generator())
    with pytest.raises(InputError, match="samples are stored .* but Quadratic makes them up. Le"):
        Fewer(Quadratic(), 5, 1, generator=generator())


def test_a_stretched_learner_is_the_same_function_of_smaller_parameters() -> None:
    plain, stretched = (Learners(make(stretch=s), 2, generator=generator()) for s in (1.0, 4.0))
    torch.testing.assert_close(stretched.start * 4, plain.start)
    batch = plain.draw()
    losses, gradients = plain.gradients(plain.start, batch)
    found, steeper = stretched.gradients(stretched.start, batch)
    torch.testing.assert_close(found, losses)
    torch.testing.assert_close(steeper, 4 * gradients)


def test_a_weight_changes_what_a_rule_is_told_and_no_loss() -> None:
    ends = []
    for weight, rate in ((1.0, 0.3), (3.0, 0.1)):
        learners = Learners(make(weight=weight), 2, generator=generator())
        rule = MetaSGD(size=learners.start.shape[1], rate=rate)
        start = Position(
            learners.start, learners.first_state(rule, learners.start), learners.draw()
        )
        end, passed = follow(
            rule, learners, start, rule.update, learners.start.new_zeros(3, 1, 1), objective="next"
        )
        ends.append((end.params.detach(), passed[-1].losses, passed[-1].slope))
    for one, other in zip(*ends, strict=True):
        torch.testing.assert_close(one, other)


FILE = """
version = 2
kind = "supervised"
title = "t"
budget = "quick"
seeds = [0]
[task]
name = "digits"
side = 2
[model]
name = "mlp"
hidden = [3]
[optimiser]
name = "anytime"
[meta]
method = "pes"
updates = 3
steps = [4, 8]
unroll = 2
together = 2
schedule = "cosine"
clamp = 0.5
norm = 2.0
clip = 3.0
[meta.random]
batch_size = [4, 6]
samples = [7]
readout = [0.0]
stretch = { from = 0.5, to = 2.0 }
weight = [1.0, 3.0]
[meta.random.model]
hidden = [[2], [5], [3, 2]]
activation = ["relu", "tanh"]
[train]
steps = 5
[[variant]]
label = "a"
"""


def test_a_configuration_has_random_learners(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(FILE)
    (config,) = runs_of(*load(str(path), []), [])
    trainer = meta_training(config, Context(None, tmp_path, bool))  # type: ignore[arg-type]
    assert (trainer.clamp, trainer.norm, trainer.estimator.clip) == (0.5, 2.0, 3.0)
    pairs = [one.learners for one in trainer.estimator.pairs]
    assert {one.problem.batch_size for one in pairs} <= {4, 6}
    for learners in pairs:
        *_, weight, bias = learners.view.tensors(learners.start)
        assert not weight.any()
        assert not bias.any()
        assert learners.start.any()
        assert 0.5 <= learners.problem.stretch <= 2
        assert len(learners.sampler.chosen) == 7
    rate = trainer.optimiser.param_groups[0]["lr"]
    while not trainer.done:
        trainer.advance()
    assert trainer.optimiser.param_groups[0]["lr"] < 0.1 * rate
    path.write_text(FILE.replace("readout", "redout"))
    (config,) = runs_of(*load(str(path), []), [])
    with pytest.raises(InputError, match="choice of meta.random.*redout.*readout"):
        meta_training(config, Context(None, tmp_path, bool))  # type: ignore[arg-type]


def test_runs_from_before_keep_their_names() -> None:
    first, *_ = runs_of(*load("rules", []), ["LSTM"])
    assert first.id == "lstm-0-d88f9c5823"
