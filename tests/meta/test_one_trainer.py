"""One trainer for all estimators: from tensors, any network, any optimiser, and absurd ends."""

import logging
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attractor import meta
from attractor.errors import InputError
from attractor.meta import Learners, MetaTrainer, Problem, problem_of
from attractor.meta.learners import _say_slower
from attractor.models import Point
from attractor.optimisers import LSTMOptimiser, MetaSGD
from attractor.tasks import Quadratic
from attractor.training import Diverged
from meta.test_trainer import QUADRATIC, generator, problem, weights

X, Y = torch.randn(90, 6, generator=generator()), torch.arange(90) % 3
SHORT: dict[str, Any] = {"steps": 6, "unroll": 3}


class Rows(nn.Module):
    """An LSTM of torch that reads two rows."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.out = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.out(self.lstm(x.view(-1, 2, 3))[0][:, -1])
        return y


COUNTS: dict[str, dict[str, Any]] = {
    "bptt": {"learners": 2},
    "pes": {"updates": 3, "pairs": 1},
    "es": {"updates": 3, "pairs": 1},
    "whole": {"updates": 3, "trainings": 1},
}


@pytest.mark.parametrize("estimator", COUNTS)
def test_from_tensors_in_a_few_lines(estimator: str) -> None:
    def make_model() -> nn.Module:
        return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))

    steps = {"steps": 6} if estimator == "whole" else SHORT
    found = []
    for _ in range(2):
        rule = LSTMOptimiser(hidden_size=4, generator=generator())
        torch.rand(3)
        options = {**steps, **COUNTS[estimator]}
        history = meta.train(
            rule, tasks=[(make_model, X, Y, F.cross_entropy)], estimator=estimator, **options
        )
        assert all(0.5 < row["loss"] < 3 for row in history)
        found.append(weights(rule))
    assert torch.equal(found[0], found[1])  # whatever torch's default generator drew in between
    fresh = LSTMOptimiser(hidden_size=4, generator=generator())
    assert not torch.equal(found[0], weights(fresh))


def test_every_tenth_sample_is_held_out_where_learners_are_judged_on_held_out_data() -> None:
    task = (lambda: nn.Linear(6, 3), X, Y, F.cross_entropy)
    made = problem_of(*task, hold_out=True).task
    [valid] = made.held_out("valid", 100)
    assert torch.equal(valid.x, X[9::10])
    assert torch.equal(valid.y, Y[9::10])
    drawn = made.batches(81, generator=generator()).draw()
    assert torch.equal(
        drawn.x.sum(0).round(decimals=3), (X.sum(0) - X[9::10].sum(0)).round(decimals=3)
    )
    rule = LSTMOptimiser(hidden_size=4, generator=generator())
    rows = meta.train(
        rule,
        tasks=[task],
        estimator="pes",
        validate_every=1,
        validate_on=1,
        **SHORT,
        **COUNTS["pes"],
    )
    assert [row["split"] for row in rows].count("meta-valid") >= 3
    few = (lambda: nn.Linear(6, 3), X[:9], Y[:9], F.cross_entropy)
    with pytest.raises(InputError, match="at least 10 samples, of which every tenth .* but got 9"):
        meta.train(rule, tasks=[few], estimator="whole", steps=6)


def test_a_module_of_torch_that_answers_with_a_tuple_is_a_learner() -> None:
    x, y = (
        torch.randn(40, 5, 3, generator=generator()),
        torch.randn(40, 5, 4, generator=generator()),
    )

    def first(said: Any, right: torch.Tensor) -> torch.Tensor:
        return F.mse_loss(said[0], right)

    rule = MetaSGD(size=sum(p.numel() for p in nn.LSTM(3, 4).parameters()), rate=0.01)
    before = weights(rule)
    task = (lambda: nn.LSTM(3, 4, batch_first=True), x, y, first)
    meta.train(rule, tasks=[task], learners=1, **SHORT)
    assert not torch.equal(weights(rule), before)


def test_what_is_no_task_is_refused() -> None:
    task = (lambda: nn.Linear(6, 3), X, Y, F.cross_entropy)
    with pytest.raises(InputError, match="problems, or tasks, but got 0 and 0"):
        meta.train(LSTMOptimiser())
    with pytest.raises(InputError, match="problems, or tasks, but got 1 and 1"):
        meta.train(LSTMOptimiser(), [problem()], tasks=[task])
    for wrong, got in (
        ([task[:2]], "2 of these"),
        (task, "function in its place"),
        ([(*task, 5)], "5 of these"),
        (5, "int in its place"),
        ([X], "Tensor in its place"),
    ):
        with pytest.raises(
            InputError, match=f"tuples .make_model, x, y, loss., but got {got}. Try"
        ):
            meta.train(LSTMOptimiser(), tasks=wrong)  # type: ignore[arg-type]
    for other, got in ((problem(), "Problem itself"), ([task], "tuple among them")):
        with pytest.raises(InputError, match=f"a list of Problem or Distribution, but got {got}."):
            meta.train(LSTMOptimiser(), other, generator=generator())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="what makes a network, but got Linear itself"):
        problem_of(nn.Linear(6, 3), X, Y)
    with pytest.raises(InputError, match="no batch_size beside problems"):
        meta.train(LSTMOptimiser(), [problem()], batch_size=3, generator=generator())
    with pytest.raises(
        InputError, match="estimator to be 'bptt' or 'pes' or 'es' or 'whole', but got 'ga'"
    ):
        MetaTrainer(LSTMOptimiser(), [problem()], estimator="ga", generator=generator())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="option of MetaTrainer"):
        MetaTrainer(
            LSTMOptimiser(), [problem()], estimator="pes", learners=3, generator=generator()
        )


def test_networks_that_torch_cannot_run_side_by_side_take_turns(
    caplog: pytest.LogCaptureFixture,
) -> None:
    _say_slower.cache_clear()
    made = problem_of(Rows, X, Y, F.cross_entropy, batch_size=7)
    learners = Learners(made, 3, generator=generator())
    batch = learners.draw()
    params = learners.start
    with caplog.at_level(logging.WARNING):
        losses, slopes = learners.gradients(params, batch)
        learners.gradients(params, batch)
        other = Learners(made, 2, generator=generator())
        other.gradients(other.start, other.draw())
    assert [r.message for r in caplog.records] == [
        "Rows cannot be run side by side by torch: its learners take turns"
    ]
    for k in range(3):
        alone = Rows()
        nn.utils.vector_to_parameters(params[k], alone.parameters())
        loss = F.cross_entropy(alone(batch.x[k]), batch.y[k])
        found = torch.autograd.grad(loss, list(alone.parameters()))
        torch.testing.assert_close(losses[k], loss.detach())
        torch.testing.assert_close(slopes[k], torch.cat([g.flatten() for g in found]))


@pytest.mark.parametrize("estimator", ["bptt", "pes"])
def test_an_lstm_of_torch_is_a_learner(estimator: str) -> None:
    rule = LSTMOptimiser(hidden_size=3, generator=generator())
    before = weights(rule)
    count = {"learners": 1} if estimator == "bptt" else {"updates": 2, "pairs": 1}
    task = (Rows, X, Y, F.cross_entropy)
    meta.train(rule, tasks=[task], estimator=estimator, **{**SHORT, **count})
    assert not torch.equal(weights(rule), before)


def test_an_absurd_end_is_a_divergence() -> None:
    """Of finite losses: the rate grows until learners end far above where they began."""
    rule = MetaSGD(size=10, rate=1e-3)
    options: dict[str, Any] = {"learners": 9, "steps": 3, "unroll": 3, "generator": generator()}
    with pytest.raises(Diverged, match="diverged in 5 rounds in a row, the last at step 3"):
        meta.train(rule, [QUADRATIC], lr=3.0, **options)
    assert torch.isfinite(weights(rule)).all()
    options["generator"] = generator()
    rule = MetaSGD(size=10, rate=1e-3)
    rows = meta.train(rule, [QUADRATIC], lr=3.0, absurd=float("inf"), **options)
    assert rows[-1]["last"] > 1e3


@pytest.mark.parametrize("estimator", ["pes", "es"])
def test_an_absurd_end_is_a_divergence_of_evolution_too(estimator: str) -> None:
    """Steps of 0.9 blow a quadratic up by the end of a stretch, whatever its first loss was."""
    rule = MetaSGD(size=10, rate=0.9)
    before = weights(rule)
    options: dict[str, Any] = {"updates": 9, "pairs": 2, "steps": 20, "unroll": 10}
    with pytest.raises(Diverged, match="diverged in 5 updates in a row, the last at update 5"):
        meta.train(rule, [QUADRATIC], estimator=estimator, generator=generator(), **options)
    assert torch.equal(weights(rule), before)


@pytest.mark.parametrize("estimator", ["pes", "es"])
def test_large_losses_that_fall_are_no_divergence(estimator: str) -> None:
    x = torch.randn(60, 4, generator=generator())
    task = (lambda: nn.Linear(4, 1), x, 40 * x[:, :1], F.mse_loss)
    rule = MetaSGD(size=5, rate=0.01)
    options: dict[str, Any] = {"updates": 8, "pairs": 2, **SHORT}
    rows = meta.train(rule, tasks=[task], estimator=estimator, **options)
    assert all(100 < row["loss"] < 5000 for row in rows)
    assert not torch.equal(weights(rule), weights(MetaSGD(size=5, rate=0.01)))


@pytest.mark.parametrize("learners", [2, 3])
def test_a_round_that_ends_absurdly_does_not_move_the_rule_and_may_not_be_the_last(
    learners: int,
) -> None:
    """The first goes well and moves the rates too far; whatever follows ends absurdly."""
    rule = MetaSGD(size=10, rate=1e-3)
    first = weights(rule)
    options: dict[str, Any] = {"steps": 3, "unroll": 3, "lr": 3.0, "generator": generator()}
    trainer = MetaTrainer(rule, [QUADRATIC], learners=learners, **options)
    trainer.advance()
    moved = weights(rule)
    assert (moved - first).abs().min() > 1
    for _ in range(learners - 2):
        [row] = trainer.advance()
        assert 1e3 < row["last"] < float("inf")
        assert torch.equal(weights(rule), moved)
    count = "the last of 2 rounds, at" if learners == 2 else "2 rounds in a row, the last at"
    with pytest.raises(Diverged, match=f"diverged in {count} step 3 of round {learners}; the rule"):
        trainer.advance()
    assert torch.equal(weights(rule), first)


def test_an_absurd_unroll_in_the_middle_of_a_round_does_not_move_the_rule() -> None:
    rule = MetaSGD(size=10, rate=3.0)
    before = weights(rule)
    options: dict[str, Any] = {"learners": 2, "steps": 4, "unroll": 2, "generator": generator()}
    trainer = MetaTrainer(rule, [QUADRATIC], **options)
    [row] = trainer.advance()
    assert 1e3 < row["last"] < float("inf")
    assert torch.equal(weights(rule), before)
    assert trainer.patience.failures == 0  # the round is not over
    MetaTrainer(rule, [QUADRATIC], **options, absurd=float("inf")).advance()
    assert not torch.equal(weights(rule), before)


@pytest.mark.parametrize("estimator", ["bptt", "pes"])
def test_another_optimiser_with_a_schedule_goes_on_where_it_was(estimator: Any) -> None:
    count = {"learners": 2} if estimator == "bptt" else {"updates": 4, "pairs": 1, "clip": 1e6}

    def made() -> MetaTrainer:
        return MetaTrainer(
            MetaSGD(size=10, rate=0.01), [Problem(partial(make, 10), Quadratic(), 1)],
            estimator=estimator, optimiser=partial(torch.optim.SGD, momentum=0.9), lr=0.02,
            schedule="cosine", generator=generator(), **{**SHORT, **count},
        )  # fmt: skip

    whole = made()
    whole.advance()
    saved = whole.state_dict()
    rates = []
    while not whole.done:
        whole.advance()
        rates.append(whole.optimiser.param_groups[0]["lr"])
    assert rates == pytest.approx([0.01, 0.02 * (1 - 0.5**0.5) / 2, 0.0], abs=1e-9)
    again = made()
    again.load_state_dict(saved)
    while not again.done:
        again.advance()
    assert torch.equal(weights(again.rule), weights(whole.rule))


def make(size: int, g: torch.Generator) -> nn.Module:
    return Point(size, generator=g)


@pytest.mark.parametrize("estimator", ["bptt", "pes"])
def test_one_clipping_for_all(estimator: Any) -> None:
    own: dict[str, Any] = SHORT if estimator == "bptt" else {**SHORT, "clip": 1e6}
    bounds: dict[str, dict[str, Any]] = {"clamp": {"clamp": 0.01}, "norm": {"norm": 0.02}}
    for name, bound in bounds.items():
        rule = MetaSGD(size=10, rate=0.01)
        options = {"estimator": estimator, **own, **bound}
        MetaTrainer(rule, [QUADRATIC], generator=generator(), **options).advance()
        assert rule.rates.grad is not None
        size = rule.rates.grad.abs().max() if name == "clamp" else rule.rates.grad.norm()
        assert size.item() == pytest.approx(bound[name], rel=1e-4)
