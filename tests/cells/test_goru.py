import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attractor.cells import GORUCell, unroll
from attractor.cells.rotations import layout, rotate
from attractor.errors import InputError
from cells.against import agree
from reference import goru
from reference.result import Array


def to_reference(cell: Any) -> dict[str, Array]:
    layers = layout(GORUCell, cell.hidden_size, cell.capacity)
    rows = torch.split(cell.theta.detach(), [layer.pairs for layer in layers])
    angles = [row.numpy() for row in rows]
    xr, xz, x = cell.weight_ih.detach().chunk(3)
    hr, hz = cell.weight_hh.detach().chunk(2)
    r, z = cell.bias.detach().chunk(2)
    named = {"W_xr": xr, "W_xz": xz, "W_x": x, "W_hr": hr, "W_hz": hz, "b_r": r, "b_z": z}
    weights = {name: value.numpy() for name, value in named.items()}
    weights["b"] = cell.modrelu_bias.detach().numpy()
    if cell.capacity is None:
        return weights | {"theta": np.stack(angles)}
    return weights | {"theta_A": np.stack(angles[0::2]), "theta_B": np.stack(angles[1::2])}


@pytest.mark.parametrize(("size", "capacity"), [(8, None), (16, None), (8, 2), (7, 5)])
def test_equals_the_reference(size: int, capacity: int | None) -> None:
    g = torch.Generator().manual_seed(0)
    cell = GORUCell(3, size, capacity=capacity, generator=g, dtype=torch.float64)
    for name, parameter in cell.named_parameters():
        if name != "theta":
            torch.nn.init.normal_(parameter, std=0.5, generator=g)
    x = torch.randn(7, 4, 3, generator=g, dtype=torch.float64)
    start = torch.randn(4, size, generator=g, dtype=torch.float64)
    for state in (cell.initial_state(4), start):
        output, last, _ = unroll(cell, cell.prepare(x), state)
        for row in range(4):
            expected = goru.run(
                to_reference(cell),
                x[:, row].numpy(),
                capacity=capacity,
                state={"h": state[row].numpy()},
            )
            agree(output[:, row], expected.outputs)
            agree(last[row], expected.state["h"])


@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 2**31),
    size=st.sampled_from([2, 4, 8, 32]),
    capacity=st.sampled_from([None, 1, 2, 7]),
)
def test_rotation_is_orthogonal(seed: int, size: int, capacity: int | None) -> None:
    g = torch.Generator().manual_seed(seed)
    cell = GORUCell(3, size, capacity=capacity, generator=g, dtype=torch.float64)
    eye = torch.eye(size, dtype=torch.float64)
    U = rotate(eye, cell.layers, cell.theta)  # its rows are the images of the unit vectors
    torch.testing.assert_close(U @ U.T, eye)
    torch.testing.assert_close(torch.linalg.det(U).item(), 1.0)


def test_open_gates_only_rotate() -> None:
    """With z closed, r open and the shift undone, what is left is the rotation."""
    g = torch.Generator().manual_seed(0)
    cell: Any = GORUCell(3, 8, generator=g, dtype=torch.float64)
    with torch.no_grad():
        cell.bias.copy_(torch.tensor([1e4] * 8 + [-1e4] * 8))
        cell.modrelu_bias.fill_(-0.001)
    h = torch.randn(2, 8, generator=g, dtype=torch.float64)
    new, _ = cell(torch.zeros(2, 3).double(), h)
    torch.testing.assert_close(new, rotate(h, cell.layers, cell.theta))


def test_initial_weights() -> None:
    cell: Any = GORUCell(3, 256)
    r, z = cell.bias.detach().chunk(2)
    assert (r == 2).all()
    assert not z.any()
    assert (cell.modrelu_bias == 0.01).all()
    assert cell.weight_ih.abs().max() <= 0.01
    assert cell.weight_hh.abs().max() <= 0.01
    assert 3 < cell.theta.abs().max() <= math.pi


def test_parameter_count() -> None:
    """As many as the equations have symbols; no count is published for this cell alone."""
    n, h = 10, 64
    expected = 3 * h * n + 2 * h * h + 3 * h + 6 * h // 2
    assert sum(p.numel() for p in GORUCell(n, h).parameters()) == expected


def test_fft_style_needs_a_power_of_two() -> None:
    with pytest.raises(InputError, match="GORUCell expects hidden_size .* got 12. Try 8 or 16"):
        GORUCell(3, 12)
    assert GORUCell(3, 12, capacity=2).hidden_size == 12
