"""Every rule against its NumPy reference: several learners, several steps, all of it in float64."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from attractor.cells import CELLS
from attractor.models import MLP
from attractor.optimisers import (
    DMSGD,
    M2SGD,
    MTL2L,
    Anytime,
    DecayNetOptimiser,
    GlobalOptimiser,
    IHCLSTMOptimiser,
    LSTMOptimiser,
    MetaSGD,
    Rule,
    preprocess,
)
from cells.against import agree, array, normal
from contracts.cells import seeded
from optimisers import weights
from reference import rules

LEARNERS, COORDINATES, STEPS = 3, 9, 6
SPECIAL = torch.tensor([0.0, np.exp(-10), -1e-7, 1e-30, -30.0], dtype=torch.float64)
"""Gradients at and around the edge of what counts as small."""
STATIC = torch.linspace(0.3, -0.9, COORDINATES, dtype=torch.float64)
"""Rates some of which are of no use without the dynamic ones."""


def random(rule: Rule) -> Any:
    """The rule in float64 with large weights, so that every part of it makes a difference."""
    g = seeded(5)
    for parameter in rule.double().parameters():
        parameter.data = torch.randn(parameter.shape, generator=g, dtype=torch.float64)
    return rule


def check(
    rule: Rule,
    reference: Callable[..., Any],
    named: dict[str, Any],
    images: torch.Tensor | None = None,
    **options: Any,
) -> torch.Tensor:
    """Parameters agree after each step of a descent on parabolas, whose gradients depend on them.

    Images are ``(step, learner, batch, pixels)``.
    """
    g = seeded(6)
    theta, bottom = (normal(LEARNERS, COORDINATES, generator=g) for _ in range(2))
    slope = torch.ones(COORDINATES, dtype=torch.float64)
    slope[: len(SPECIAL)], bottom[:, : len(SPECIAL)] = 0, -SPECIAL
    state, own = rule.init(theta), [None] * LEARNERS
    expected = list(array(theta))
    for step in range(STEPS):
        shown = None if images is None else images[step]
        steps, state = rule.update(slope * theta - bottom, state, theta, context=shown)
        theta = theta + steps
        assert steps.std(1).min() > 1e-6
        for k in range(LEARNERS):
            if shown is not None:
                options["images"] = array(shown[k])
            gradient = array(slope) * expected[k] - array(bottom[k])
            expected[k], own[k] = reference(named, expected[k], gradient, own[k], **options)
            agree(theta[k], expected[k])
    return theta


def test_preprocessing() -> None:
    g = torch.cat([SPECIAL, 10 ** normal(200) ** 3, -(10 ** normal(200) ** 3)])
    agree(preprocess(g), rules.preprocess(array(g)), rtol=1e-12)
    agree(preprocess(g, 3.0), rules.preprocess(array(g), 3.0), rtol=1e-12)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_lstm(layers: int) -> None:
    rule = random(LSTMOptimiser(hidden_size=4, layers=layers))
    check(rule, rules.lstm_optimiser, weights.coordinatewise(rule, weights.lstm_layer))


def test_lstm_of_the_published_size() -> None:
    rule = random(LSTMOptimiser())
    check(rule, rules.lstm_optimiser, weights.coordinatewise(rule, weights.lstm_layer))


def test_a_narrow_lstm_steps_by_the_output_of_its_last_unit() -> None:
    rule = LSTMOptimiser(hidden_size=4, narrow=True, generator=seeded())
    assert rule.head is None
    stack: Any = rule.stack.cells
    first, last = stack
    assert [float(cell.bias[0].detach()) for cell in (first, last)] == [-1.0, -1.0]
    g, theta = normal(STEPS, 1, COORDINATES).float(), torch.zeros(1, COORDINATES)
    state = rule.init(theta)
    below, above = first.initial_state(COORDINATES), last.initial_state(COORDINATES)
    for gradient in g:
        step, state = rule.update(gradient, state, theta)
        h, below = first(preprocess(gradient)[0], below)
        h, above = last(h, above)
        torch.testing.assert_close(step, 0.1 * h.T)
        assert 0 < float(step.detach().abs().max()) < 0.1


def test_ihc_lstm() -> None:
    rule = random(IHCLSTMOptimiser(hidden_size=4))
    check(rule, rules.ihc_lstm_optimiser, weights.coordinatewise(rule.inner, weights.ihc_layer))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_decaynet(n: int) -> None:
    rule = random(DecayNetOptimiser(hidden_size=4, iterations=n))
    named = weights.coordinatewise(rule, weights.decaynet_layer)
    check(rule, rules.decaynet_optimiser, named, n=n)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("cell", ["decaynet", "lstm"])
def test_global_form(cell: str, n: int) -> None:
    rule = random(
        GlobalOptimiser(size=COORDINATES, cell=cell, reduced_size=3, hidden_size=5, iterations=n)
    )
    check(rule, rules.global_optimiser, weights.whole(rule), n=n, decays=cell == "decaynet")


@pytest.mark.parametrize("stable", [True, False])
def test_mtl2l(stable: bool) -> None:
    rule = random(
        MTL2L(context_size=6, stable=stable, hidden_size=4, hyper_size=5, generator=seeded())
    )
    images = normal(STEPS, LEARNERS, 7, 6)
    check(rule, rules.mtl2l, weights.mtl2l(rule), images, stable=stable)


def test_the_fixed_matrices_of_mtl2l_are_orthogonal_and_all_different() -> None:
    fixed = MTL2L(context_size=2).double().fixed.flatten(0, 3)
    eye = torch.eye(20, dtype=torch.float64).expand_as(fixed)
    torch.testing.assert_close(fixed @ fixed.mT, eye, atol=1e-5, rtol=0)
    assert len(fixed) == 2 * 2 * 2 * 4
    assert torch.pdist(fixed.flatten(1)).min() > 1


def test_meta_sgd() -> None:
    rule = random(MetaSGD(size=COORDINATES))
    check(rule, rules.meta_sgd, {"beta": array(rule.rates)})


@pytest.mark.parametrize("size", [None, COORDINATES])
def test_dmsgd(size: int | None) -> None:
    rule = random(DMSGD(size=size, hidden_size=4))
    rule.static.data = STATIC[: size or 1].clone()
    check(rule, rules.dmsgd, weights.rates(rule))


@pytest.mark.parametrize("size", [None, COORDINATES])
@pytest.mark.parametrize("threshold", [0.0, 0.1, 0.2825])
def test_m2sgd(threshold: float, size: int | None) -> None:
    rule = random(M2SGD(threshold=threshold, size=size, hidden_size=4))
    rule.inner.static.data = STATIC[: size or 1].clone()
    theta = check(rule, rules.m2sgd, weights.rates(rule.inner), threshold=threshold)
    assert 0 < (theta == 0).sum() < theta.numel()


def test_anytime() -> None:
    rule = random(Anytime())
    check(rule, rules.anytime, weights.anytime(rule))


def test_anytime_starts_as_adam_around_an_average() -> None:
    """Without the average, the fading and the decay it is torch's Adam."""
    rule = Anytime(rate=0.01).double()
    for off in (rule.logit_beta, rule.log_p, rule.log_delta):
        torch.nn.init.constant_(off, -50)
    ours, theirs = (normal(5, generator=seeded(2)).requires_grad_() for _ in range(2))
    adam = torch.optim.Adam([theirs], lr=0.01)
    optimiser = rule([ours])
    for _ in range(20):
        for theta, one in ((ours, optimiser), (theirs, adam)):
            theta.grad = torch.cos(3 * theta.detach())
            one.step()
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-7)


def test_published_counts() -> None:
    """Kuo et al. (2020), V-C: 3.28 and 2.82 thousand; MTL2L, B.1: learners of 25.4 thousand."""

    def last_layer(rule: Any) -> int:
        return sum(p.numel() for p in rule.stack.cells[1].parameters())

    assert last_layer(LSTMOptimiser()) == 3_280
    assert last_layer(IHCLSTMOptimiser().inner) == 2_820
    assert sum(p.numel() for p in MLP([784, 32, 10]).parameters()) == 25_450


def test_sizes_of_the_global_form() -> None:
    """Kuo et al. (2018), appendix D: r -> 28 -> 64 -> r, with two layer normalisations."""
    rule = GlobalOptimiser(size=100)
    shapes = {name: tuple(p.shape) for name, p in rule.named_parameters()}
    assert shapes["down.weight"] == (28, 100)
    assert shapes["up.weight"] == (100, 64)
    assert shapes["stack.cells.0.cell.weight_ih"] == (4 * 64, 28)
    assert len([name for name in shapes if ".norm_" in name and name.endswith("weight")]) == 2


@pytest.mark.parametrize("cell", sorted(CELLS))
def test_any_cell_takes_the_place_of_the_lstm(cell: str) -> None:
    options: dict[str, Any] = {"decaynet": {"length": 10}}.get(cell, {})
    rule = LSTMOptimiser(cell=cell, hidden_size=8, generator=seeded(), **options)
    assert rule.head is not None
    torch.nn.init.ones_(rule.head.weight)  # an untrained rule moves nothing
    params = normal(2, 5).float()
    state = rule.init(params)
    for _ in range(3):
        steps, state = rule.update(params, state, params)
        params = params + steps
    assert params.shape == (2, 5)
    assert params.isfinite().all()
    assert steps.any()
