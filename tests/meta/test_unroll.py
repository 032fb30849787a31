"""Meta-gradients against plain autograd, finite differences and each other."""

import inspect
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from attractor.meta import Learners, Problem
from attractor.meta.unroll import Objective, Position, first_order, second_order
from attractor.models import MLP
from attractor.optimisers import OPTIMISERS, LSTMOptimiser, MetaSGD, Rule, View
from attractor.optimisers.blocks import advance
from attractor.tasks import Batch, Digits
from contracts.optimisers import NAMES

SIZE = 64 * 3 + 3 + 30 + 10
OPTIONS: dict[str, Any] = {"size": SIZE, "context_size": 64, "hidden_size": 4}


def problem() -> Problem:
    return Problem(
        lambda g: MLP([64, 3, 10], activation="tanh", generator=g, dtype=torch.float64), DOUBLE, 6
    )


class Double(Digits):
    """The digits in double precision."""

    def samples(self, index: Tensor, generator: torch.Generator | None = None) -> Batch:
        batch = super().samples(index, generator)
        return replace(batch, x=batch.x.double())


DOUBLE = Double(order="flat")


def make(key: str) -> Rule:
    torch.manual_seed(0)
    known = inspect.signature(OPTIMISERS[key].kind).parameters.values()
    needed = {
        p.name for p in known if p.default is p.empty or p.name in ("hidden_size", "context_size")
    }
    rule: Rule = OPTIMISERS[key].kind(**{k: v for k, v in OPTIONS.items() if k in needed}).double()
    for name, parameter in rule.named_parameters():  # also those that start at zero
        torch.nn.init.normal_(parameter, mean=0.5 if "static" in name else 0.0, std=0.1)
    return rule


def begin(rule: Rule, learners: int = 2) -> tuple[Learners, Position]:
    made = Learners(problem(), learners, generator=torch.Generator().manual_seed(1))
    state = made.first_state(rule, made.start)
    return made, Position(made.start, state, made.draw())


def meta_gradient(engine: Any, rule: Rule, updates: int = 3, **options: Any) -> dict[str, Tensor]:
    learners, start = begin(rule)
    noise = (
        0.01
        * torch.randn(
            updates, *start.params.shape, generator=torch.Generator().manual_seed(2)
        ).double()
    )
    rule.zero_grad()
    engine(rule, learners, start, noise, **options)
    return {n: p.grad.clone() for n, p in rule.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("objective", ["next", "same"])
@pytest.mark.parametrize("key", NAMES)
def test_block_by_block_is_the_gradient_of_one_graph(
    key: str, objective: Objective, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = make(key)
    plain = meta_gradient(second_order, rule, objective=objective, detach=True)
    monkeypatch.setattr("attractor.meta.unroll.BLOCK", 50)
    blocked = meta_gradient(first_order, rule, objective=objective)
    assert plain.keys() == blocked.keys()
    for name, gradient in plain.items():
        torch.testing.assert_close(blocked[name], gradient, rtol=1e-9, atol=1e-11)
    assert any(gradient.any() for gradient in plain.values())


@pytest.mark.parametrize("key", ["lstm", "meta_sgd", "dmsgd"])
def test_second_order_is_the_slope_of_the_losses(key: str) -> None:
    rule = make(key)
    gradient = meta_gradient(second_order, rule)

    def total() -> float:
        learners, start = begin(rule)
        noise = (
            0.01
            * torch.randn(
                3, *start.params.shape, generator=torch.Generator().manual_seed(2)
            ).double()
        )
        with torch.enable_grad():
            done = second_order(rule, learners, start, noise)
        return float(done.losses.mean(1).sum())

    generator = torch.Generator().manual_seed(3)
    for name, parameter in rule.named_parameters():
        direction = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        with torch.no_grad():
            parameter.add_(1e-5 * direction)
            above = total()
            parameter.add_(-2e-5 * direction)
            below = total()
            parameter.add_(1e-5 * direction)
        slope = float((gradient[name] * direction).sum())
        assert (above - below) / 2e-5 == pytest.approx(slope, rel=1e-4, abs=1e-7), name


def test_the_last_update_of_an_unroll_counts() -> None:
    """With one update per unroll, Algorithm 1 taken literally learns nothing."""
    rule = MetaSGD(size=SIZE).double()
    gradient = meta_gradient(first_order, rule, updates=1)
    assert gradient["rates"].abs().sum() > 0


def test_the_start_is_left_as_it_was_and_the_end_goes_on() -> None:
    rule = make("lstm")
    learners, start = begin(rule)
    kept = start.params.clone(), [t.clone() for t in torch.utils._pytree.tree_leaves(start.state)]
    first = first_order(rule, learners, start, torch.zeros(2, 1, 1).double())
    second = first_order(rule, learners, first.end, torch.zeros(2, 1, 1).double())
    assert torch.equal(start.params, kept[0])
    for now, before in zip(torch.utils._pytree.tree_leaves(start.state), kept[1], strict=True):
        assert torch.equal(now, before)
    learners, start = begin(rule)
    whole = first_order(rule, learners, start, torch.zeros(4, 1, 1).double())
    torch.testing.assert_close(second.end.params, whole.end.params)
    torch.testing.assert_close(torch.cat([first.losses, second.losses]), whole.losses)


def noisy() -> Rule:
    """A rule whose cells draw random numbers."""
    torch.manual_seed(0)
    rule = LSTMOptimiser(cell="tardis", hidden_size=3).double()
    for parameter in rule.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return rule


def test_a_rule_that_draws_has_the_gradient_of_what_it_drew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("attractor.optimisers.blocks.NUMBERS", 10**6)  # all in one block
    rule = noisy()
    found = []
    for engine, options in ((second_order, {"detach": True}), (first_order, {})):
        torch.manual_seed(3)
        found.append(meta_gradient(engine, rule, **options))
    for name, gradient in found[0].items():
        torch.testing.assert_close(found[1][name], gradient, rtol=1e-9, atol=1e-11)


def test_what_is_drawn_for_a_block_is_drawn_for_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = noisy()
    monkeypatch.setattr("attractor.optimisers.blocks.NUMBERS", 5000)
    steps: dict[tuple[bool, int], list[Tensor]] = {}
    update = rule.update

    def noted(grads: Tensor, state: Any, params: Tensor, view: View) -> Any:
        step, after = update(grads, state, params, view)
        steps.setdefault((torch.is_grad_enabled(), view.where.start), []).append(step.detach())
        return step, after

    monkeypatch.setattr(rule, "update", noted)
    learners, start = begin(rule)
    torch.manual_seed(3)
    first_order(rule, learners, start, torch.zeros(3, 1, 1).double())
    after = torch.get_rng_state()
    blocks = {first for _, first in steps}
    assert len(blocks) > 2
    for first in blocks:
        torch.testing.assert_close(steps[True, first], steps[False, first])
        assert not torch.equal(*steps[True, first][:2])
    learners, start = begin(rule)
    torch.manual_seed(3)
    with torch.no_grad():
        state = start.state.map(torch.clone)
        for _ in range(3):
            advance(rule, start.params, state, start.params, learners.view)
    assert torch.equal(torch.get_rng_state(), after)


@pytest.mark.parametrize("engine", [first_order, second_order])
def test_the_end_of_an_unroll_holds_no_graph(engine: Any) -> None:
    """Else the next one would keep the memory of this one."""
    rule = make("lstm")
    learners, start = begin(rule)
    found = engine(rule, learners, start, torch.zeros(2, 1, 1).double())
    held = [found.losses, found.end.params, *torch.utils._pytree.tree_leaves(found.end.state)]
    assert len(held) > 2
    assert not any(tensor.requires_grad for tensor in held)
