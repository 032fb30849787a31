from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attractor.cells import NRUCell, Recurrent, unroll
from attractor.cells.nru import NRUState, directions
from attractor.errors import InputError
from cells.against import agree
from reference import nru
from reference.result import Array

SIZES: list[dict[str, Any]] = [
    {"memory_size": 16, "heads": 4},
    {"memory_size": 8, "heads": 2},
    {"memory_size": 9},
]
CHOICES: list[dict[str, Any]] = [
    dict(zip(("relu_heads", "heads_read_input", "average_heads"), values, strict=True))
    for values in product((False, True), repeat=3)
]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def to_reference(cell: Any) -> dict[str, Array]:
    n, k, s = cell.hidden_size, cell.heads, cell.side
    x, m, b = (w.detach() for w in (cell.weight_ih, cell.weight_mh, cell.bias))
    weights = {"W_h": cell.weight_hh.detach(), "W_i": x[:n], "W_c": m[:n], "b_h": b[:n]}
    sizes = {"alpha": k, "beta": k, "pw": s, "pe": s, "qw": s, "qe": s}
    blocks = zip(
        *(torch.split(w, list(sizes.values())) for w in (m[n:], cell.weight_heads.detach(), b[n:])),
        strict=True,
    )
    for name, (from_m, from_h, bias) in zip(sizes, blocks, strict=True):
        weights |= {f"W_{name}_m": from_m, f"W_{name}_h": from_h, f"b_{name}": bias}
    if cell.heads_read_input:
        for name, from_x in zip(sizes, torch.split(x[n:], list(sizes.values())), strict=True):
            weights[f"W_{name}_x"] = from_x
    return {name: value.numpy() for name, value in weights.items()}


@pytest.mark.parametrize("memory", ["additive", "multiplicative"])
@pytest.mark.parametrize("choice", CHOICES, ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_equals_the_reference(size: dict[str, Any], choice: dict[str, Any], memory: Any) -> None:
    g = torch.Generator().manual_seed(0)
    cell = NRUCell(3, 6, memory=memory, generator=g, dtype=torch.float64, **size, **choice)
    x = torch.randn(7, 4, 3, generator=g, dtype=torch.float64)
    start = NRUState(
        torch.rand(4, 6, generator=g, dtype=torch.float64),
        torch.randn(4, cell.memory_size, generator=g, dtype=torch.float64),
    )
    for state in (cell.initial_state(4), start):
        output, (h, m), _ = unroll(cell, cell.prepare(x), state)
        for row in range(4):
            expected = nru.run(
                to_reference(cell),
                x[:, row].numpy(),
                multiplicative=memory == "multiplicative",
                state={"h": state.h[row].numpy(), "m": state.m[row].numpy()},
                **choice,
            )
            found = (output[:, row], h[row], m[row])
            wanted = (expected.outputs, expected.state["h"], expected.state["m"])
            for ours, theirs in zip(found, wanted, strict=True):
                agree(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize(("norm", "memory_size"), [(2, 16), (1, 16), (3.5, 9)])
def test_equals_the_reference_with_another_norm(norm: float, memory_size: int) -> None:
    """Also as a layer, so that no kernel takes it for the fifth."""
    g = torch.Generator().manual_seed(1)
    layer = Recurrent("nru", 3, 6, memory_size=memory_size, norm=norm, generator=g).double()
    x = torch.randn(5, 2, 3, generator=g, dtype=torch.float64)
    output, _ = layer(x)
    weights = to_reference(next(one for one in layer.modules() if isinstance(one, NRUCell)))
    for row in range(2):
        expected = nru.run(weights, x[:, row].numpy(), p_norm=norm)
        agree(output[:, row].detach(), expected.outputs, rtol=1e-12)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**31),
    shape=st.sampled_from([(1, 1), (4, 1), (4, 2), (6, 4), (16, 4)]),
    power=st.floats(-10, 36),
    share=st.floats(0.3, 0.7),
    relu_heads=st.booleans(),
)
def test_directions_have_unit_norm(
    seed: int, shape: tuple[int, int], power: float, share: float, relu_heads: bool
) -> None:
    """In float32, whether the outer product is 1e-10 or 1e36: its fifth power need not exist."""
    side, heads = shape
    g = torch.Generator().manual_seed(seed)
    p, q = torch.randn(2, 3, side, generator=g).clamp(-4, 4)
    p, q = p * 10 ** (power * share), q * 10 ** (power * (1 - share))
    v = directions(p, q, heads, relu_heads=relu_heads)
    assert v.shape == (3, heads, side**2 // heads)
    norms = v.double().abs().pow(5).sum(-1) ** 0.2
    outer = (p.double()[:, :, None] * q.double()[:, None]).reshape(v.shape)
    size = (outer.relu() if relu_heads else outer.abs()).amax(-1)
    torch.testing.assert_close(norms[size > 1e-12], torch.ones(int((size > 1e-12).sum())).double())
    assert (norms[size <= 1e-12] < 2).all()
    if relu_heads:
        assert (v >= 0).all()


def test_directions_by_hand() -> None:
    p, q = torch.tensor([1.0, 2.0, 0.0, -1.0]), torch.tensor([1.0, 0.0, 0.0, 2.0])
    v = directions(p, q, 2)
    first = torch.tensor([1.0, 0.0, 0.0, 2.0, 2.0, 0.0, 0.0, 4.0]) / 1089**0.2
    second = torch.tensor([0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, -2.0]) / 33**0.2
    torch.testing.assert_close(v, torch.stack((first, second)))
    assert not directions(p, q, 2, relu_heads=True)[1].any()


def test_directions_do_not_feel_the_scale() -> None:
    """Nor do their gradients: a larger p turns the direction less, in proportion."""
    g = torch.Generator().manual_seed(0)
    p, q, w = torch.randn(3, 8, generator=g)
    w = torch.randn(4, 16, generator=g)
    grads = []
    for scale in (1.0, 2.0**60):
        scaled = (scale * p).requires_grad_()
        v = directions(scaled, q, 4)
        torch.testing.assert_close(v, directions(p, q, 4))
        torch.autograd.backward((v * w).sum())
        assert scaled.grad is not None
        grads.append(scale * scaled.grad)
    torch.testing.assert_close(grads[1], grads[0])


def test_empty_directions_have_finite_gradients() -> None:
    p, q = torch.ones(4, requires_grad=True), -torch.ones(4)
    v = directions(p, q, 1, relu_heads=True)
    torch.autograd.backward(v.sum())
    assert not v.any()
    assert p.grad is not None
    assert not p.grad.any()


@pytest.mark.parametrize(
    ("sizes", "outputs", "memory_size", "count"),
    [((10, 80), 9, 64, 23_569), ((1, 212), 10, 256, 165_554)],
)
def test_published_parameter_counts(
    sizes: tuple[int, int], outputs: int, memory_size: int, count: int
) -> None:
    """Copying (23.5k) and psMNIST (165k) with the output layer, heads as in the author's code."""
    cell = NRUCell(*sizes, memory_size=memory_size, heads_read_input=False)
    assert sum(p.numel() for p in cell.parameters()) + outputs * (sizes[1] + 1) == count
    rows = 2 * cell.heads + 4 * cell.side
    more = NRUCell(*sizes, memory_size=memory_size)
    extra = sum(p.numel() for p in more.parameters()) - sum(p.numel() for p in cell.parameters())
    assert extra == rows * sizes[0]


@pytest.mark.parametrize(
    ("hidden_size", "heads", "memory_size"),
    [(80, 4, 64), (8, 4, 4), (128, 4, 144), (1, 4, 4), (100, 1, 100), (50, 2, 50), (10, 3, 12)],
)
def test_default_memory_is_about_as_large_as_the_hidden_state(
    hidden_size: int, heads: int, memory_size: int
) -> None:
    assert NRUCell(3, hidden_size, heads=heads).memory_size == memory_size


def test_initial_weights_are_those_of_a_linear_layer() -> None:
    cell: Any = NRUCell(44, 40, memory_size=16, heads_read_input=False)
    for weight in (cell.weight_ih, cell.weight_hh, cell.weight_mh[:40], cell.bias[:40]):
        assert 0.08 < weight.abs().max() <= 0.1  # 100 inputs
    for weight in (cell.weight_heads, cell.weight_mh[40:], cell.bias[40:]):
        assert 0.1 < weight.abs().max() <= 56**-0.5


@pytest.mark.parametrize("heads_read_input", [False, True])
def test_summed_heads_start_as_their_mean(heads_read_input: bool) -> None:
    summed, averaged = (
        NRUCell(
            3,
            8,
            average_heads=average,
            heads_read_input=heads_read_input,
            generator=torch.Generator().manual_seed(0),
        )
        for average in (False, True)
    )
    x = torch.randn(9, 2, 3, generator=torch.Generator().manual_seed(1))
    one, other = (unroll(c, c.prepare(x), c.initial_state(2)).state for c in (summed, averaged))
    torch.testing.assert_close(one, other)


def test_without_feedback_a_new_memory_grows_in_proportion_to_the_length() -> None:
    """With it, the memory of a new network grows exponentially."""
    cells = [NRUCell(10, 100, memory_size=64, feedback=f, generator=seeded()) for f in (1, 0)]
    x = torch.randn(800, 4, 10, generator=seeded(1))
    for cell, low, high in zip(cells, (1e6, 1.0), (torch.inf, 6.0), strict=True):
        with torch.no_grad():
            half = unroll(cell, cell.prepare(x[:400]), cell.initial_state(4)).state
            whole = unroll(cell, cell.prepare(x[400:]), half).state
        assert low < whole.m.abs().max() / half.m.abs().max() < high


def test_feedback_scales_what_contents_read_of_the_state_and_nothing_else() -> None:
    full, less = (NRUCell(3, 8, memory_size=16, feedback=f, generator=seeded()) for f in (1, 0.3))
    for name, weight in full.named_parameters():
        other, first = less.get_parameter(name), 0 if name == "weight_heads" else 8
        scaled = weight.detach().clone()
        if name in ("weight_heads", "weight_mh"):
            scaled[first : first + 8] *= 0.3
        torch.testing.assert_close(other, scaled, rtol=0, atol=0)


def test_memory_and_heads_are_checked() -> None:
    with pytest.raises(
        InputError, match=r"a perfect square, but 4 \* 65 = 260. Try memory_size=64"
    ):
        NRUCell(3, 5, memory_size=65)
    with pytest.raises(InputError, match="heads to be a whole number of at least 1, but got 0"):
        NRUCell(3, 5, heads=0)
    with pytest.raises(InputError, match="norm to be at least 1, but got 0.5"):
        NRUCell(3, 5, norm=0.5)
    with pytest.raises(InputError, match="feedback to be at least 0, but got -1"):
        NRUCell(3, 5, feedback=-1)
    with pytest.raises(InputError, match="'additive' or 'multiplicative', but got 'none'"):
        NRUCell(3, 5, memory="none")  # type: ignore[arg-type]
