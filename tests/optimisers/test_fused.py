"""Kernels of rules: the numbers of torch, whatever the layout, the shape and the threads."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from attractor.cells.kernels import STATUS
from attractor.optimisers import LSTMOptimiser, Rule, State, View, fused
from attractor.optimisers.blocks import advance
from attractor.optimisers.rules import mtl2l, recurrent
from contracts.cells import seeded
from contracts.optimisers import LENGTH, make_rule

pytestmark = pytest.mark.skipif(STATUS.path is None, reason=f"kernels are {STATUS}")

CASES: dict[str, Callable[[], Rule]] = {
    "lstm": lambda: make_rule("lstm", hidden_size=20),
    "lstm of one layer": lambda: make_rule("lstm", hidden_size=5, layers=1, scale=0.3, p=7.0),
    "narrow lstm": lambda: make_rule("lstm", hidden_size=9, narrow=True),
    "lstm of one unit": lambda: make_rule("lstm", hidden_size=1),
    "dmsgd": lambda: make_rule("dmsgd", hidden_size=20, gamma=0.6),
    "m2sgd": lambda: make_rule("m2sgd", hidden_size=6, threshold=0.1, p=8.0),
    "mtl2l": lambda: make_rule("mtl2l", hidden_size=20),
    "mtl2l of three layers": lambda: make_rule("mtl2l", layers=3, stable=False),
    "ihc_lstm": lambda: make_rule("ihc_lstm", hidden_size=20),
    "decaynet": lambda: make_rule("decaynet", hidden_size=20, iterations=3),
}
cases = pytest.mark.parametrize("case", CASES)
SCALES = torch.tensor([1e-7, 1e-3, 1.0, 30.0], dtype=torch.float64)
"""Of gradients: small ones, which `preprocess` reads in another way, and large ones."""


@contextmanager
def reference(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Without kernels."""
    with monkeypatch.context() as patch:
        patch.setattr(recurrent, "step", lambda *_, **__: None)
        patch.setattr(mtl2l, "step", lambda *_, **__: None)
        yield


def drawn(seed: int, *shape: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64).to(dtype)


def descent(rule: Rule, learners: int, coordinates: int, steps: int = 4) -> list[Tensor]:
    """Steps along gradients of all sizes, the state, and gradients of all of it by the weights."""
    dtype = next(rule.parameters()).dtype
    context = drawn(3, learners, 4, LENGTH, dtype=dtype) if rule.needs_context else None
    view = View(((coordinates,),), slice(0, coordinates), context)
    params = drawn(1, learners, coordinates, dtype=dtype)
    state, total = rule.init(params, view), params.new_zeros(())
    made = []
    for t in range(steps):
        grads = SCALES[t % 4].to(dtype) * drawn(10 + t, learners, coordinates, dtype=dtype)
        added, state = rule.update(grads, state, params, view)
        params = params + added
        made.append(added)
        total = total + (added * drawn(30 + t, learners, coordinates, dtype=dtype)).sum()
    leaves = list(state.named().values())
    total = total + sum((i + 1) * leaf.sin().sum() for i, leaf in enumerate(leaves))
    weights = [w for w in rule.parameters() if w.requires_grad]
    slopes = torch.autograd.grad(total, weights, allow_unused=True)
    return [t.detach() for t in (*made, *leaves, *slopes) if t is not None]


def compare(found: list[Tensor], wanted: list[Tensor], within: float) -> None:
    for one, other in zip(found, wanted, strict=True):
        size = max(1.0, float(other.abs().max()))
        torch.testing.assert_close(one, other, rtol=0, atol=within * size)


@cases
@pytest.mark.parametrize(
    ("dtype", "within"), [(torch.float32, 1e-5), (torch.float64, 1e-10)], ids=["float", "double"]
)
def test_numbers_are_those_of_torch(
    case: str, dtype: torch.dtype, within: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = CASES[case]().to(dtype)
    for learners, coordinates in ((1, 1), (2, 37), (3, 200)):
        found = descent(rule, learners, coordinates)
        with reference(monkeypatch):
            wanted = descent(rule, learners, coordinates)
        compare(found, wanted, within)


def test_the_kernel_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def note(name: str, call: Any, way: str) -> int:
        ran.append(way)
        return 1

    monkeypatch.setattr(fused, "run", note)
    descent(make_rule("lstm"), 1, 5, steps=1)
    with torch.no_grad():
        LSTMOptimiser().update(torch.ones(1, 2), *given(LSTMOptimiser(), 2))
    assert ran == ["nowhere", "there", "back", "there"]


def given(rule: Rule, coordinates: int) -> tuple[State, Tensor, View]:
    params = torch.ones(1, coordinates)
    view = View.of([params[0]])
    return rule.init(params, view), params, view


@pytest.mark.parametrize("case", ["lstm", "narrow lstm", "mtl2l", "dmsgd"])
def test_any_shape_is_right(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule, g = CASES[case]().double(), seeded(7)
    for _ in range(12):
        learners, coordinates = (int(torch.randint(1, top, (), generator=g)) for top in (4, 90))
        found = descent(rule, learners, coordinates, steps=2)
        with reference(monkeypatch):
            compare(found, descent(rule, learners, coordinates, steps=2), 1e-10)


def test_a_state_of_any_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that was loaded, or sliced, or misaligned."""
    rule = make_rule("lstm", hidden_size=5).double()
    params, view = drawn(1, 2, 40, dtype=torch.float64), View(((40,),), slice(0, 40))
    state = rule.init(params, view).map(lambda s: torch.randn_like(s))
    wanted = tree_leaves(rule.update(params, state, params, view))
    for change in (
        lambda s: s.contiguous(),
        lambda s: torch.cat([s, s], dim=1)[:, :40],
        lambda s: torch.cat([s.mT[..., :1], s.mT], dim=2).mT[:, 1:],
        lambda s: torch.cat([s, s], dim=-1)[..., :5],
    ):
        found = tree_leaves(rule.update(params, state.map(change), params, view))
        compare([t.detach() for t in found], [t.detach() for t in wanted], 1e-12)


def test_a_block_is_changed_in_place() -> None:
    """Also where it is a part of a larger state, and nothing beside it changes."""
    rule = make_rule("lstm", hidden_size=5)
    params = drawn(1, 2, 50, dtype=torch.float32)
    view = View(((50,),), slice(0, 50))
    with torch.no_grad():
        state = rule.init(params, view)
        part, at = state.at(slice(7, 30)), view.at(slice(7, 30))
        steps, after = rule.update(params[:, 7:30], part, params[:, 7:30], at)
        before = [leaf.data_ptr() for leaf in part.named().values()]
        quick = advance(rule, params[:, 7:30], part, params[:, 7:30], at)
    assert [leaf.data_ptr() for leaf in part.named().values()] == before
    torch.testing.assert_close(quick, steps, rtol=0, atol=0)
    for name, leaf in state.named().items():
        assert torch.equal(leaf[:, 7:30], after.named()[name])
        assert not leaf[:, :7].any()
        assert not leaf[:, 30:].any()


def test_numbers_do_not_depend_on_the_threads() -> None:
    rule, threads = make_rule("lstm", hidden_size=20), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = descent(rule, 2, 5003, steps=2)
        torch.set_num_threads(3)
        together = descent(rule, 2, 5003, steps=2)
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(one, other) for one, other in zip(alone, together, strict=True))


def test_second_derivatives_by_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = make_rule("lstm", hidden_size=4).double()

    def twice() -> list[Tensor]:
        added, after = rule.update(torch.linspace(-2, 2, 6).double()[None], *given64(rule))
        weights = list(rule.parameters())
        first = torch.autograd.grad(
            added.sin().sum() + after.each[0].c.exp().sum(), weights, create_graph=True
        )
        total = torch.stack([one.square().sum() for one in first]).sum()
        second = torch.autograd.grad(total, weights, allow_unused=True)
        return [t.detach() for t in (*first, *second) if t is not None]

    found = twice()
    with reference(monkeypatch):
        compare(found, twice(), 1e-10)


def given64(rule: Rule) -> tuple[State, Tensor, View]:
    params = torch.ones(1, 6, dtype=torch.float64)
    view = View.of([params[0]])
    state = rule.init(params, view).map(lambda s: 0.3 + s)
    return state, params, view


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_goes_where_it_goes_in_torch(
    bad: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = make_rule("lstm", hidden_size=4)
    grads = torch.tensor([[0.1, bad, -2.0, 0.0]])
    with torch.no_grad():
        found = tree_leaves(rule.update(grads, *given(rule, 4)))
        with reference(monkeypatch):
            wanted = tree_leaves(rule.update(grads, *given(rule, 4)))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, equal_nan=True, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "change",
    [
        lambda rule: rule.bfloat16(),
        lambda rule: setattr(rule.stack.cells[0], "step", rule.stack.cells[0].step),
        lambda rule: setattr(rule, "p", 90.0),
    ],
)
def test_what_has_no_kernel_goes_by_torch(change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rule: Any = make_rule("lstm")
    change(rule)
    monkeypatch.setattr(fused, "run", lambda *_: pytest.fail("the kernel is in use"))
    params = torch.ones(1, 3, dtype=next(rule.parameters()).dtype)
    view = View.of([params[0]])
    rule.update(params, rule.init(params, view), params, view)


@pytest.mark.parametrize("case", ["dmsgd", "m2sgd", "mtl2l"])
def test_a_network_that_is_seen_in_few_pieces_moves_as_one_that_is_seen_in_many(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = CASES[case]().float()
    params, context = (
        drawn(1, 1, 700, dtype=torch.float32),
        drawn(3, 1, 4, LENGTH, dtype=torch.float32),
    )
    view = View(((700,),), slice(0, 700), context if rule.needs_context else None)
    found = []
    for size in (64, 1 << 16):
        monkeypatch.setattr("attractor.optimisers.blocks.STREAMED", size)
        state = rule.init(params, view).map(torch.clone)
        steps = [advance(rule, s * params.cos(), state, params, view) for s in (0.3, 2.0)]
        found.append([*steps, *state.named().values()])
    compare(found[0], found[1], 1e-6)
    assert rule.streams
