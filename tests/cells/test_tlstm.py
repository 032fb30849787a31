import math
from typing import Any

import pytest
import torch
from torch import Tensor

from attractor.cells import TLSTMCell, TLSTMState
from attractor.errors import InputError
from cells.against import blocks, check, random_cell
from reference import tlstm


@pytest.mark.parametrize("output_gate", ["sigmoid", "tanh"])
def test_equals_the_reference(output_gate: str) -> None:
    cell = random_cell(TLSTMCell, 3, 5, output_gate=output_gate)
    weights = blocks("W_", "FOA", cell.weight_ih) | blocks("U_", "FOA", cell.weight_previous)
    weights |= blocks("b_", "FOA", cell.bias)

    def pack(c: Tensor, x: Tensor) -> TLSTMState:
        return TLSTMState(c, x @ cell.weight_previous.detach().T)

    check(cell, tlstm.run, weights, {"c": 5, "x": 3}, pack, output_gate=output_gate)


def test_initial_values() -> None:
    cell = TLSTMCell(3, 5, forget_bias=1.0)
    assert cell.bias is not None
    assert cell.bias.tolist() == [1.0] * 5 + [0.0] * 10
    wide = TLSTMCell(40, 25)
    for weight in (wide.weight_ih, wide.weight_previous):
        assert 0.19 < weight.abs().max() <= 0.2
        assert weight.mean().abs() < 0.02
    assert not torch.equal(wide.weight_ih, wide.weight_previous)
    square = TLSTMCell(6, 6, input_init="orthogonal")
    for block in square.weight_previous.detach().chunk(3):
        torch.testing.assert_close(block @ block.T, torch.eye(6))
    chrono = TLSTMCell(3, 100, t_max=50)
    assert chrono.bias is not None
    assert 0 <= chrono.bias[:100].min() < chrono.bias[:100].max() <= math.log(49)


def test_unknown_output_gate() -> None:
    gate: Any = "relu"
    with pytest.raises(InputError, match="'sigmoid' or 'tanh', but got 'relu'"):
        TLSTMCell(3, 5, output_gate=gate)
