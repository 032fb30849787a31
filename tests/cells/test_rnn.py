from typing import Any

import pytest
import torch

from attractor.cells import RNNCell
from cells.against import array, check, random_cell
from reference import rnn


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("layer_norm", [False, True])
def test_equals_the_reference(activation: str, layer_norm: bool) -> None:
    cell = random_cell(RNNCell, 3, 5, nonlinearity=activation, layer_norm=layer_norm)
    weights = {"U": array(cell.weight_ih), "W": array(cell.weight_hh)}
    if layer_norm:
        weights |= {"gamma": array(cell.norm.weight), "beta": array(cell.norm.bias)}
        weights["b"] = array(torch.zeros(5))
    else:
        weights["b"] = array(cell.bias)
    options: dict[str, Any] = {"activation": activation, "layer_norm": layer_norm}
    check(cell, rnn.run, weights, {"h": 5}, lambda h: h, **options)
