"""Evolution with several moves of a pair, logarithms and averages, and how a configuration asks."""

import math
from pathlib import Path

import pytest
import torch

from attractor.errors import InputError
from attractor.experiments.kinds.supervised import meta_training
from attractor.experiments.table import load
from attractor.experiments.train import runs_of
from attractor.meta import MetaTrainer
from attractor.meta.evolution import Evolution
from attractor.meta.networks import Attention
from attractor.optimisers import Anytime, MetaSGD, Pacer, save_rule
from attractor.runs.drive import Context
from contracts.optimisers import make_rule
from meta.test_trainer import generator, pes, problem, weights


@pytest.mark.parametrize("logarithm", [False, True])
def test_every_move_is_weighed_by_what_it_changed(logarithm: bool) -> None:
    """Two pairs of three moves whose losses are given: the estimate by hand."""
    rule = MetaSGD(size=310, rate=0.1)
    found = Evolution(
        rule,
        [problem()],
        pairs=2,
        moves=3,
        steps=8,
        unroll=4,
        sigma=0.2,
        logarithm=logarithm,
        generator=generator(),
    )
    expected = torch.zeros(310)
    for number, pair in enumerate(found.pairs):
        pair.moved = {"rates": torch.randn(3, 310, generator=generator(number))}
        above, below = (torch.rand(3, 4, generator=generator(10 * number + k)) for k in (5, 6))
        pair.stretch = lambda by, a=above, b=below: (a, b)  # type: ignore[misc, method-assign]
        for k in range(3):
            pairs = zip(above[k].tolist(), below[k].tolist(), strict=True)
            if logarithm:
                change = sum(math.log(a + 0.01) - math.log(b + 0.01) for a, b in pairs)
            else:
                change = sum(a - b for a, b in pairs)
            expected += change / 4 / (2 * 0.2**2) * pair.moved["rates"][k] / 6
    said = found.stretch()
    torch.testing.assert_close(rule.rates.grad, expected)
    assert 0 < said.loss < 1


def test_moves_of_a_pair_are_opposite_and_add_up() -> None:
    rule = MetaSGD(size=310, rate=0.1)
    trainer = pes(rule, [problem()], pairs=1, moves=3, steps=9, unroll=2, generator=generator())
    (pair,) = trainer.estimator.pairs
    assert len(pair.learners.start) == 6
    assert torch.equal(pair.learners.start[0], pair.learners.start[5])
    before = pair.position.params
    _, slope = pair.learners.gradients(before, pair.position.batch)
    pair.stretch(Evolution(rule, [problem()], moves=3, steps=9, unroll=1, generator=generator()))
    taken = before - pair.position.params
    torch.testing.assert_close(taken[:3] - 0.1 * slope[:3], pair.moved["rates"] * slope[:3])
    torch.testing.assert_close(taken[3:] - 0.1 * slope[3:], -pair.moved["rates"] * slope[:3])


def test_learners_are_judged_where_the_rule_wants_them() -> None:
    rule = Anytime(rate=0.1)
    at = {}
    for settled in (True, False):
        trainer = pes(
            rule,
            [problem()],
            pairs=1,
            steps=5,
            unroll=5,
            sigma=1e-9,
            settled=settled,
            generator=generator(),
        )
        (pair,) = trainer.estimator.pairs
        above, _ = pair.stretch(trainer.estimator)
        params, state, batch = pair.position
        there = rule.settled(params, state, pair.learners.view) if settled else params
        expected = pair.learners.losses(there.detach(), batch)[0]
        at[settled] = above[0, -1].item()
        assert at[settled] == pytest.approx(expected.item(), rel=1e-5)
    assert abs(at[True] - at[False]) > 1e-3


def test_a_stopped_evolution_of_moves_ends_with_the_same_weights() -> None:
    def trainer(seed: int) -> MetaTrainer:
        return pes(
            Anytime(),
            [problem(), problem(3)],
            updates=4,
            moves=2,
            steps=(3, 5),
            unroll=2,
            settled=True,
            logarithm=True,
            generator=generator(seed),
        )

    whole = trainer(0)
    whole.advance()
    saved = whole.state_dict()
    while not whole.done:
        whole.advance()
    resumed = trainer(9)
    resumed.load_state_dict(saved)
    while not resumed.done:
        resumed.advance()
    assert torch.equal(weights(resumed.rule), weights(whole.rule))


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
name = "pacer"
hidden_size = 8
[meta]
method = "pes"
tasks = [
    { name = "digits", side = 2 },
    { name = "digits", order = "rows", model = { name = "NETWORK" }, random.model.width = [6] },
    { name = "digits", model = { cell = "gru", hidden_size = 3 }, random = { batch_size = [7] } },
]
updates = 2
steps = 4
unroll = 2
together = 3
moves = 2
logarithm = true
settled = true
start = "START"
frozen = ["lift", "mixture"]
[meta.random]
batch_size = [5]
[train]
steps = 5
[[variant]]
label = "a"
""".replace("NETWORK", "attractor.meta.networks:Attention")


def trainer_of(tmp_path: Path, text: str) -> MetaTrainer:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    (config,) = runs_of(*load(str(path), []), [])
    return meta_training(config, Context(None, tmp_path, bool))  # type: ignore[arg-type]


def test_a_configuration_has_several_networks_a_start_and_frozen_weights(tmp_path: Path) -> None:
    begin = make_rule("pacer", hidden_size=8)
    save_rule(begin, tmp_path / "begin.safetensors")
    text = FILE.replace("START", str(tmp_path / "begin.safetensors"))
    trainer = trainer_of(tmp_path, text)
    estimator = trainer.estimator
    assert (estimator.moves, estimator.logarithm, estimator.settled) == (2, True, True)
    assert torch.equal(weights(trainer.rule), weights(begin))
    mlp, attention, gru = (pair.learners for pair in estimator.pairs)
    assert isinstance(attention.judged.network, Attention)
    assert mlp.view.shapes[0] == (3, 4)
    assert (6, 8) in attention.view.shapes
    assert [one.problem.batch_size for one in (mlp, attention, gru)] == [5, 5, 7]
    while not trainer.done:
        trainer.advance()
    moved = {
        name
        for name, value in trainer.rule.named_parameters()
        if not torch.equal(value, dict(begin.named_parameters())[name])
    }
    still = {n for n, _ in begin.named_parameters() if n.startswith("lift.") or n == "mixture"}
    assert {n for n, _ in begin.named_parameters()} - moved == still


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    save_rule(Pacer(hidden_size=4), tmp_path / "other.safetensors")
    text = FILE.replace("START", str(tmp_path / "other.safetensors"))
    with pytest.raises(InputError, match="meta.start to hold a rule 'pacer'.*same options"):
        trainer_of(tmp_path, text)
    text = FILE.replace('start = "START"', "").replace("mixture", "mixtur")
    with pytest.raises(InputError, match="meta.frozen.*mixtur.*mixture"):
        trainer_of(tmp_path, text)
