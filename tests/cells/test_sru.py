import math
from typing import Any

import pytest
import torch

from attractor.cells import SRUCell
from cells.against import blocks, check, normal, random_cell
from contracts.cells import seeded
from reference import sru


@pytest.mark.parametrize("input_size", [3, 5])
@pytest.mark.parametrize("rescale", [False, True])
def test_equals_the_reference(input_size: int, rescale: bool) -> None:
    cell = random_cell(SRUCell, input_size, 5, rescale=rescale, highway_bias=-1.0)
    names = "FPA" if input_size == 5 else "FPAX"
    weights = blocks("W_", names, cell.weight_ih) | blocks("b_", "FP", cell.bias)
    weights |= blocks("omega_", "FP", cell.omega)
    scale = math.sqrt(1 + 2 * math.exp(-1)) if rescale else 1.0
    check(cell, sru.run, weights, {"c": 5}, lambda c: c, scale=scale)


def test_initial_values() -> None:
    cell = SRUCell(12, 7, forget_bias=1.0, highway_bias=-1.0)
    assert cell.bias is not None
    assert cell.bias.tolist() == [1.0] * 7 + [-1.0] * 7
    assert 0.4 < cell.weight_ih.abs().max() <= 0.5
    square = SRUCell(6, 6, input_init="orthogonal")
    for block in square.weight_ih.detach().chunk(3):
        torch.testing.assert_close(block @ block.T, torch.eye(6))
    chrono = SRUCell(3, 100, t_max=50)
    assert chrono.bias is not None
    assert 0 <= chrono.bias[:100].min() < chrono.bias[:100].max() <= math.log(49)


@pytest.mark.parametrize("highway_bias", [-1.0, 0.5])
def test_rescaling_other_sizes_is_of_the_initial_weights(highway_bias: float) -> None:
    """As Lei et al.'s code: the factor goes into the matrix that stands for x."""
    options: dict[str, Any] = {"highway_bias": highway_bias, "dtype": torch.float64}
    plain = SRUCell(3, 5, generator=seeded(), **options)
    scaled = SRUCell(3, 5, rescale=True, generator=seeded(), **options)
    factor = math.sqrt(1 + 2 * math.exp(highway_bias))
    assert torch.equal(scaled.weight_ih[:15], plain.weight_ih[:15])
    torch.testing.assert_close(scaled.weight_ih[15:], factor * plain.weight_ih[15:])
    scaled.load_state_dict(plain.state_dict())
    x = normal(2, 3)
    state = normal(2, 5)
    torch.testing.assert_close(scaled(x, state), plain(x, state), rtol=0, atol=0)


def test_without_biases() -> None:
    cell = SRUCell(3, 5, bias=False)
    output, _ = cell(torch.zeros(2, 3), cell.initial_state(2))
    assert not output.any()
