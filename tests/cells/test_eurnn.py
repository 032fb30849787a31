import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from attractor.cells import EURNNCell, EURNNState, unroll
from attractor.cells.rotations import angles, layout, rotate
from attractor.errors import InputError
from cells.against import agree
from reference import eurnn
from reference.result import Array


def angles_by_name(name: str, values: Tensor, size: int, capacity: int | None) -> dict[str, Array]:
    """From one vector of angles to the reference's tables of them."""
    layers = layout(EURNNCell, size, capacity)
    rows = [row.numpy() for row in torch.split(values.detach(), [layer.pairs for layer in layers])]
    if capacity is None:
        return {name: np.stack(rows)}
    odd, even = rows[0::2], rows[1::2]
    return {
        f"{name}_A": np.stack(odd),
        f"{name}_B": np.stack(even) if even else np.zeros((0, (size - 1) // 2)),
    }


def to_reference(cell: Any) -> dict[str, Array]:
    weights = {"b": cell.bias.detach().numpy()}
    given = (cell.hidden_size, cell.capacity)
    weights |= angles_by_name("theta", cell.theta, *given)
    if cell.real:
        return weights | {"U": cell.weight_ih.detach().numpy()}
    assert cell.phi is not None
    assert cell.omega is not None
    re, im = cell.weight_ih.detach().chunk(2)
    weights |= angles_by_name("phi", cell.phi, *given)
    return weights | {"U_re": re.numpy(), "U_im": im.numpy(), "omega": cell.omega.detach().numpy()}


def random_cell(size: int, seed: int = 0, **options: Any) -> Any:
    g = torch.Generator().manual_seed(seed)
    cell: Any = EURNNCell(3, size, generator=g, dtype=torch.float64, **options)
    for parameter in (cell.weight_ih, cell.bias):
        torch.nn.init.normal_(parameter, std=0.5, generator=g)
    return cell


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize(("size", "capacity"), [(8, None), (2, None), (8, 1), (7, 2), (6, 5)])
def test_equals_the_reference(size: int, capacity: int | None, real: bool) -> None:
    cell = random_cell(size, capacity=capacity, real=real)
    x = torch.randn(7, 4, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    output, last, _ = unroll(cell, cell.prepare(x), cell.initial_state(4))
    h_n = last if real else torch.complex(*last)
    weights = to_reference(cell)
    for row in range(4):
        expected = eurnn.run(weights, x[:, row].numpy(), capacity=capacity, real=real)
        agree(output[:, row], expected.outputs.real)
        agree(h_n[row], expected.state["h"])


def relative_change_of_norm(cell: Any, steps: int, generator: torch.Generator) -> float:
    """Without input, from a random state, with the bias that the cell starts from."""
    h = torch.randn(2, 3, cell.hidden_size, generator=generator).to(cell.bias.dtype)
    start = h[0] if cell.real else EURNNState(h[0], h[1])
    with torch.no_grad():
        silence = cell.prepare(torch.zeros(steps, 3, 1, dtype=cell.bias.dtype))
        _, last, _ = unroll(cell, silence, start)
    before, after = (
        (s if isinstance(s, Tensor) else torch.cat(s, dim=-1)).double().norm(dim=-1)
        for s in (start, last)
    )
    return float((after / before - 1).abs().max())


@settings(deadline=None, max_examples=10)
@given(
    seed=st.integers(0, 2**31),
    size=st.sampled_from([2, 16, 64]),
    capacity=st.sampled_from([None, 1, 4]),
    real=st.booleans(),
    precision=st.sampled_from([(torch.float64, 1e-12), (torch.float32, 1e-4)]),
)
def test_norm_is_kept_for_a_thousand_steps(
    seed: int, size: int, capacity: int | None, real: bool, precision: tuple[torch.dtype, float]
) -> None:
    """To 1e-5 and far better in float64, of any size.

    In float32 the cosine and the sine of an angle are rounded, the same way in all steps, so that
    the errors of 1,000 steps add up: to 5e-5 for few units, and to 1e-5 only from 512 units on.
    """
    dtype, bound = precision
    g = torch.Generator().manual_seed(seed)
    cell: Any = EURNNCell(1, size, capacity=capacity, real=real, generator=g, dtype=dtype)
    assert torch.equal(cell.bias, torch.full_like(cell.bias, -0.01 if real else 0.0))
    assert relative_change_of_norm(cell, 1000, g) < bound


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**31), size=st.integers(1, 6), capacity=st.integers(0, 9))
def test_rotation_is_unitary(seed: int, size: int, capacity: int) -> None:
    """Any angles, any layout; a capacity of 0 stands for FFT-style."""
    size = 2**size if capacity == 0 else size + 1
    layers = layout(EURNNCell, size, capacity or None)
    g = torch.Generator().manual_seed(seed)
    theta, phi = 100 * torch.randn(2, angles(layers), generator=g, dtype=torch.float64)
    eye = torch.eye(size, dtype=torch.float64)
    W = torch.complex(*rotate(torch.stack((eye, torch.zeros_like(eye))), layers, theta, phi))
    torch.testing.assert_close(W @ W.mH, eye + 0j)


def test_fft_style_mixes_every_unit_with_every_other() -> None:
    layers = layout(EURNNCell, 16, None)
    W = rotate(torch.eye(16), layers, torch.full((angles(layers),), math.pi / 4))
    torch.testing.assert_close(W.abs(), torch.full((16, 16), 0.25))


@pytest.mark.parametrize("real", [False, True])
def test_silence_has_finite_gradients(real: bool) -> None:
    """The modulus of a zero state has no derivative; training must not see that."""
    cell = EURNNCell(3, 8, real=real)
    x = torch.zeros(4, 2, 3, requires_grad=True)
    output, _, _ = unroll(cell, cell.prepare(x), cell.initial_state(2))
    torch.autograd.backward(output.sum())
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in cell.parameters())


def test_parameter_count_for_permuted_mnist() -> None:
    """1,024 real units and a ten-way output: the "~17k" of the thesis, section 4.3.4."""
    cell = EURNNCell(1, 1024, real=True)
    assert sum(p.numel() for p in cell.parameters()) + 10 * 1024 + 10 == 17_418
    cell = EURNNCell(1, 1024)
    assert sum(p.numel() for p in cell.parameters()) + 10 * 1024 + 10 == 24_586


def test_initial_weights() -> None:
    cell = EURNNCell(3, 256)
    assert cell.phi is not None
    assert cell.omega is not None
    assert 0.009 < cell.weight_ih.abs().max() <= 0.01
    for angle in (cell.theta, cell.phi, cell.omega):
        assert 3 < angle.abs().max() <= math.pi


@pytest.mark.parametrize(("size", "near"), [(6, "4 or 8"), (1, "2 or 2"), (100, "64 or 128")])
def test_fft_style_needs_a_power_of_two(size: int, near: str) -> None:
    text = f"EURNNCell expects hidden_size to be a power of two .* got {size}. Try {near}, or cap"
    with pytest.raises(InputError, match=text):
        EURNNCell(3, size)


def test_capacity_is_checked() -> None:
    with pytest.raises(InputError, match="capacity to be a whole number of at least 1, but got 0"):
        EURNNCell(3, 8, capacity=0)
    with pytest.raises(InputError, match="hidden_size to be at least 2, to have a pair .* got 1"):
        EURNNCell(3, 1, capacity=2)
