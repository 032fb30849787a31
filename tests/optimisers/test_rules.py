"""Every rule against NumPy: several learners and tensors, several steps, in float64."""

import inspect
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from attractor.cells import CELLS
from attractor.errors import InputError
from attractor.models import MLP
from attractor.optimisers import (
    MTL2L,
    Anytime,
    GlobalOptimiser,
    IHCLSTMOptimiser,
    LSTMOptimiser,
    Pacer,
    Rule,
    View,
    preprocess,
)
from cells.against import agree, array, normal
from contracts.cells import seeded
from contracts.optimisers import NAMES, make_rule
from optimisers.references import COORDINATES, PIXELS, REFERENCES, SHAPES
from reference import rules

LEARNERS, STEPS = 3, 6
SPECIAL = torch.tensor([0.0, np.exp(-10), -1e-7, 1e-30, -30.0], dtype=torch.float64)
"""Gradients at and around the edge of what counts as small."""
SCALES = torch.tensor([[0.02], [0.3], [1.0]]).double() * torch.tensor([1.0] * 4 + [3.0] + [0.1] * 4)
"""Of initial parameters: other in each learner, and in each tensor."""


def view_of(*shapes: tuple[int, ...]) -> View:
    return View.of(torch.zeros(shape) for shape in shapes)


@pytest.mark.parametrize("name", NAMES)
def test_against_numpy(name: str) -> None:
    """Parameters agree after each step on parabolas, whose gradients depend on them."""
    assert REFERENCES.get(name), (
        f"{name} lacks an independent reference in optimisers/references.py"
    )
    for make in REFERENCES[name]:
        rule, reference, named, options = make()
        g = seeded(6)
        theta, bottom = (normal(LEARNERS, COORDINATES, generator=g) for _ in range(2))
        theta = theta * SCALES
        slope = torch.ones(COORDINATES, dtype=torch.float64)
        slope[: len(SPECIAL)], bottom[:, : len(SPECIAL)] = 0, -SPECIAL
        images = normal(STEPS, LEARNERS, 7, PIXELS) if rule.needs_context else None
        view = view_of(*SHAPES)
        state, own = rule.init(theta, view), [None] * LEARNERS
        expected = list(array(theta))
        for step in range(STEPS):
            shown = None if images is None else images[step]
            seen = view._replace(context=shown)
            steps, state = rule.update(slope * theta - bottom, state, theta, seen)
            theta = theta + steps
            assert steps.std(1).min() > 1e-6
            for k in range(LEARNERS):
                if shown is not None:
                    options["images"] = array(shown[k])
                gradient = array(slope) * expected[k] - array(bottom[k])
                expected[k], own[k] = reference(named, expected[k], gradient, own[k], **options)
                agree(theta[k], expected[k])
        if options.get("threshold", -1.0) >= 0:
            assert 0 < (theta == 0).sum() < theta.numel()


def test_the_references_are_independent() -> None:
    assert "attractor" not in inspect.getsource(rules)
    assert sorted(REFERENCES) == NAMES


def test_preprocessing() -> None:
    g = torch.cat([SPECIAL, 10 ** normal(200) ** 3, -(10 ** normal(200) ** 3)])
    agree(preprocess(g), rules.preprocess(array(g)), rtol=1e-12)
    agree(preprocess(g, 3.0), rules.preprocess(array(g), 3.0), rtol=1e-12)


def test_a_narrow_lstm_steps_by_the_output_of_its_last_unit() -> None:
    rule = LSTMOptimiser(hidden_size=4, narrow=True, generator=seeded())
    assert rule.head is None
    stack: Any = rule.stack.cells
    first, last = stack
    assert [float(cell.bias[0].detach()) for cell in (first, last)] == [-1.0, -1.0]
    g, theta = normal(STEPS, 1, COORDINATES).float(), torch.zeros(1, COORDINATES)
    state = rule.init(theta, view_of((COORDINATES,)))
    below, above = first.initial_state(COORDINATES), last.initial_state(COORDINATES)
    for gradient in g:
        step, state = rule.update(gradient, state, theta, view_of((COORDINATES,)))
        h, below = first(preprocess(gradient)[0], below)
        h, above = last(h, above)
        torch.testing.assert_close(step, 0.1 * h.T)
        assert 0 < float(step.detach().abs().max()) < 0.1


def test_the_fixed_matrices_of_mtl2l_are_orthogonal_and_all_different() -> None:
    fixed = MTL2L(context_size=2).double().fixed.flatten(0, 3)
    eye = torch.eye(20, dtype=torch.float64).expand_as(fixed)
    torch.testing.assert_close(fixed @ fixed.mT, eye, atol=1e-5, rtol=0)
    assert len(fixed) == 2 * 2 * 2 * 4
    assert torch.pdist(fixed.flatten(1)).min() > 1


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
    options: dict[str, Any] = {"length": 10} if "decaynet" in cell else {}
    rule = LSTMOptimiser(cell=cell, hidden_size=8, generator=seeded(), **options)
    assert rule.head is not None
    torch.nn.init.ones_(rule.head.weight)  # an untrained rule moves nothing
    params = normal(2, 5).float()
    view = view_of((5,))
    state = rule.init(params, view)
    for _ in range(3):
        steps, state = rule.update(params, state, params, view)
        params = params + steps
    assert params.shape == (2, 5)
    assert params.isfinite().all()
    assert steps.any()


@pytest.mark.parametrize("rule", [Anytime(), Pacer(), make_rule("rnnprop")])
def test_a_square_that_overflows_is_no_nan(rule: Rule) -> None:
    """As in Adam, where a coordinate whose square was infinite stands still."""
    params = torch.linspace(-1, 1, 6)[None]
    view = View.of([params[0]])
    state = rule.init(params, view)
    for step in range(4):
        grads = torch.ones(1, 6)
        grads[0, 2] = 1e25 if step == 1 else 1.0
        moves, state = rule.update(grads, state, params, view)
        assert moves.detach().isfinite().all()


def test_the_cell_of_an_ihc_lstm_is_its_own() -> None:
    with pytest.raises(
        InputError, match=r"has its own, but got 'gru'. Try LSTMOptimiser\(cell='gru"
    ):
        IHCLSTMOptimiser(cell="gru")


def test_a_rule_without_a_key_is_refused_where_it_is_written() -> None:
    told = "expected the rule Mine to have a key, .* but it has none. Write such as key = .mine."
    with pytest.raises(InputError, match=told):

        class Mine(Rule):
            def update(self, grads: Any, state: Any, params: Any, view: Any) -> Any: ...

    with pytest.raises(InputError, match="the rule Numbered to have a key, .* but it has 3."):

        class Numbered(Rule):
            key: ClassVar[Any] = 3

            def update(self, grads: Any, state: Any, params: Any, view: Any) -> Any: ...


def test_what_rules_share_needs_no_key() -> None:
    class Shared(Rule):
        """A base that cannot be made by itself."""

    class Named(Shared):
        key = "named"

        def update(self, grads: Any, state: Any, params: Any, view: Any) -> Any: ...

    assert Named().key == "named"


def test_a_rule_without_weights_is_refused() -> None:
    class Bare(Rule):
        key = "bare"

        def update(self, grads: Any, state: Any, params: Any, view: Any) -> Any: ...

    with pytest.raises(InputError, match="the rule Bare to have weights of its own, but it has"):
        Bare()([torch.zeros(3, requires_grad=True)])
