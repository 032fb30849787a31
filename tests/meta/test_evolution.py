"""Evolution strategies: the estimate, what it leaves alone, and that it stops and goes on."""

import copy
from typing import Any

import numpy as np
import pytest
import torch

from attractor.errors import InputError
from attractor.meta import MetaTrainer, Problem
from attractor.models import Point
from attractor.optimisers import DMSGD, MTL2L, LSTMOptimiser, MetaSGD
from attractor.tasks import Batch, Quadratic
from attractor.training import Diverged
from meta.test_trainer import DIGITS, frozen, generator, pes, problem, weights


@pytest.mark.parametrize("stop", range(1, 6))
def test_a_stopped_evolution_ends_with_the_same_weights(stop: int) -> None:
    def trainer(seed: int) -> MetaTrainer:
        return pes(
            MTL2L(context_size=64, hidden_size=4, generator=generator(seed)),
            [problem(), problem(5)],
            updates=6,
            pairs=3,
            steps=(4, 9),
            unroll=2,
            generator=generator(seed),
        )

    whole = trainer(0)
    for _ in range(stop):
        whole.advance()
    saved = whole.state_dict()
    ends = [whole.advance() for _ in iter(lambda: whole.done, True)]
    resumed = trainer(99)
    resumed.load_state_dict(saved)
    assert [resumed.advance() for _ in iter(lambda: resumed.done, True)] == ends
    assert torch.equal(weights(resumed.rule), weights(whole.rule))


def test_evolution_that_wrecks_the_rule_is_noticed_and_undone() -> None:
    rule = MetaSGD(size=64 * 4 + 4 + 50, rate=1e-3)
    before = weights(rule)
    trainer = pes(
        rule, [problem()], updates=9, pairs=2, steps=6, unroll=3, lr=1e6, generator=generator()
    )
    for _ in range(5):
        trainer.advance()
    assert not torch.equal(weights(rule), before)
    with pytest.raises(Diverged, match="diverged in 5 updates in a row, the last at update 6"):
        trainer.advance()
    assert torch.equal(weights(rule), before)


def test_one_pair_that_diverges_does_not_stop_evolution() -> None:
    wild = Problem(lambda g: Point(310, generator=g), Quadratic(310), 1)
    trainer = pes(
        MetaSGD(size=310, rate=0.01),
        [wild, problem()],
        updates=8,
        pairs=2,
        steps=100,
        unroll=2,
        generator=generator(),
    )
    while not trainer.done:
        assert trainer.advance()[0]["loss"] > 6  # five times its first loss, for the one


@pytest.mark.parametrize("cell", ["tardis", "ntm"])
def test_evolution_trains_a_rule_that_draws_random_numbers(cell: str) -> None:
    rule = LSTMOptimiser(cell=cell, hidden_size=3, generator=generator())
    trainer = pes(rule, [problem(2)], updates=2, pairs=1, steps=4, unroll=2, generator=generator())
    before = weights(rule)
    while not trainer.done:
        trainer.advance()
    assert not torch.equal(weights(rule), before)


def test_bad_settings_of_evolution_are_refused() -> None:
    for options in ({"sigma": 0.0}, {"clip": -1.0}, {"sigma": float("nan")}):
        with pytest.raises(InputError, match="sigma|clip"):
            pes(DMSGD(), [problem()], generator=generator(), **options)  # type: ignore[arg-type]


def test_evolution_finds_the_direction_of_the_true_gradient() -> None:
    """Over a whole training, the mean estimate points where the loss falls: rates go up."""
    rule = MetaSGD(size=64 * 4 + 4 + 50, rate=0.001)
    trainer = pes(
        rule,
        [problem()],
        updates=30,
        pairs=8,
        steps=20,
        unroll=5,
        sigma=0.01,
        lr=1e-2,
        generator=generator(),
    )
    while not trainer.done:
        trainer.advance()
    assert rule.rates.mean() > 0.01


def test_evolution_trains_a_recurrent_rule() -> None:
    rule = DMSGD(hidden_size=4, generator=generator())
    trainer = pes(
        rule,
        [problem(), problem(6)],
        updates=3,
        pairs=2,
        steps=(4, 8),
        unroll=4,
        generator=generator(),
    )
    before = weights(rule)
    while not trainer.done:
        assert trainer.advance()[0]["loss"] > 0
    assert not torch.equal(weights(rule), before)


class Bowl(Quadratic):
    """A small quadratic in double precision."""

    def __init__(self) -> None:
        super().__init__(2)

    def draw(self, *, generator: torch.Generator) -> Any:
        drawn = super().draw(generator=generator)
        return Batch(0.3 * drawn.x.double(), drawn.y.double())


def test_the_estimate_is_that_of_the_paper() -> None:
    """In NumPy: moves add up over a learner's life, and each of its updates counts alike."""
    sigma, unroll, horizon = 0.05, 2, 5
    bowl = Problem(lambda g: Point(2, std=0.4, dtype=torch.float64, generator=g), Bowl(), 1)
    rule = MetaSGD(size=2, rate=0.3).double()
    trainer = pes(
        rule, [bowl], updates=9, pairs=2, steps=horizon, unroll=unroll, sigma=sigma, lr=0.0,
        generator=generator(),
    )  # fmt: skip
    lives: dict[int, list[Any]] = {}
    for _ in range(4):
        pairs = list(trainer.estimator.pairs)
        before = [pair.moved["rates"][0].clone() for pair in pairs]
        [row] = trainer.advance()
        expected, losses = np.zeros(2), []
        for pair, old in zip(pairs, before, strict=True):
            batch = pair.position.batch
            W, y = batch.x[0].numpy(), batch.y[0].numpy()
            start = pair.learners.start[0].numpy()
            thetas, age = lives.get(id(pair), ([start, start], 0))
            epsilon = (pair.moved["rates"][0] - old).numpy()
            difference = 0.0
            count = min(unroll, horizon - age)
            for side, sign in enumerate((1, -1)):
                for _ in range(count):
                    slope = 2 * W.T @ (W @ thetas[side] - y)
                    thetas[side] = thetas[side] - (0.3 + sign * epsilon) * slope
                    losses.append(((W @ thetas[side] - y) ** 2).sum())
                    difference += sign * losses[-1]
            lives[id(pair)] = [thetas, age + count]
            expected += difference / unroll / (2 * sigma**2) * pair.moved["rates"][0].numpy() / 2
        expected /= max(1.0, float(np.linalg.norm(expected)))
        assert rule.rates.grad is not None
        np.testing.assert_allclose(rule.rates.grad.numpy(), expected, rtol=1e-5)
        assert row["loss"] == pytest.approx(np.mean(losses))
    assert all(pair.updates <= horizon for pair in pairs)
    assert len(lives) == 4  # the first two ended, after a last stretch of one update


@pytest.mark.parametrize("objective", ["next", "same"])
def test_an_update_is_judged_on_the_batch_that_was_said(objective: Any) -> None:
    trainer = pes(
        DMSGD(hidden_size=2), [problem()], pairs=1, steps=4, unroll=1, objective=objective,
        generator=generator(),
    )  # fmt: skip
    (pair,) = trainer.estimator.pairs
    first = pair.position.batch
    [row] = trainer.advance()
    on = {"same": first, "next": pair.position.batch}
    found = {
        name: pair.learners.losses(pair.position.params, batch).mean().item()
        for name, batch in on.items()
    }
    assert row["loss"] == pytest.approx(found[objective], abs=1e-7)
    assert found["same"] != pytest.approx(found["next"], abs=1e-3)
    assert pes(DMSGD(), [problem()], generator=generator()).estimator.objective == "next"


def test_frozen_parameters_of_learners_are_left_alone() -> None:
    """Also by a rule that moves where the gradient is zero."""
    rule = LSTMOptimiser(hidden_size=3, generator=generator())
    for parameter in rule.parameters():
        parameter.data.add_(0.1)
    trainer = pes(
        rule, [Problem(frozen, DIGITS, 8)], pairs=1, steps=9, unroll=2, generator=generator()
    )
    trainer.advance()
    (pair,) = trainer.estimator.pairs
    start, now = pair.learners.start, pair.position.params
    assert torch.equal(now[:, :260], start[:, :260])
    assert (now[:, 260:] != start[:, 260:]).all()


def test_frozen_weights_of_the_rule_are_left_alone() -> None:
    rule = DMSGD(hidden_size=3, generator=generator())
    rule.static.requires_grad_(False)
    before = copy.deepcopy(rule.state_dict())
    trainer = pes(rule, [problem(2)], updates=2, pairs=1, steps=4, unroll=2, generator=generator())
    while not trainer.done:
        trainer.advance()
    assert torch.equal(rule.static, before["static"])
    assert not torch.equal(rule.head.weight, before["head.weight"])
    assert {*trainer.estimator.pairs[0].moved} == {*before} - {"static"}


def test_plain_evolution_forgets_earlier_moves_and_persistent_does_not() -> None:
    """Of the same draws: the second stretch is weighed by its own move, or by all so far."""
    found = {}
    for estimator in ("es", "pes"):
        trainer = MetaTrainer(
            MetaSGD(size=310, rate=0.02), [problem()], estimator=estimator, pairs=1, steps=20,
            unroll=2, sigma=0.3, lr=0.0, norm=1e9, generator=generator(),
        )  # fmt: skip
        (pair,) = trainer.estimator.pairs
        moves = []
        for _ in range(3):
            trainer.advance()
            moves.append(pair.moved["rates"].clone())
        found[estimator] = moves
    torch.testing.assert_close(torch.stack(found["es"]).cumsum(0), torch.stack(found["pes"]))
    assert not torch.allclose(found["es"][1], found["pes"][1])
