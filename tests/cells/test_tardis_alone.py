"""TARDIS when it answers from what it read: without its state, with and without the input."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Generator

from attractor.cells import Recurrent, read_alone
from attractor.errors import InputError
from cells.memory_weights import scatter

SIZES: dict[str, Any] = {"cells": 5, "address_size": 3, "content_size": 4, "attention_size": 6}


def test_it_can_answer_from_what_it_read_alone() -> None:
    layer = Recurrent("tardis", 3, 7, num_layers=1, **SIZES).eval()
    (cell,) = layer.cells
    x = torch.randn(9, 2, 3, generator=Generator().manual_seed(0))
    whole, _, before = layer(x, return_states=True)
    with read_alone(layer):
        alone, _, states = layer(x, return_states=True)
    r = states.r[:, 0]
    expected = torch.tanh(F.linear(r, cell.output_rh, cell.output_bias))  # type: ignore[arg-type]
    torch.testing.assert_close(alone, expected)
    torch.testing.assert_close(states.h, before.h)  # only the answer changes
    assert not torch.allclose(alone, whole)
    torch.testing.assert_close(layer(x)[0], whole)
    with (
        pytest.raises(InputError, match="expected a model with a TARDIS in it"),
        read_alone(torch.nn.Linear(1, 1)),
    ):
        pass


@pytest.mark.parametrize("reset_gates", [True, False])
@torch.no_grad()
def test_it_can_answer_from_what_it_read_and_the_input(reset_gates: bool) -> None:
    layer = Recurrent("tardis", 3, 7, reset_gates=reset_gates, **SIZES).double().eval()
    (cell,) = layer.cells
    scatter(cell)
    x = torch.randn(9, 2, 3, generator=Generator().manual_seed(0)).double()
    whole, _, before = layer(x, return_states=True)
    with read_alone(layer, inputs=True):
        found, _, states = layer(x, return_states=True)
        assert torch.equal(layer(x)[0], found)
    for name in ("h", "content", "read", "r"):  # only the answer changes
        torch.testing.assert_close(getattr(states, name), getattr(before, name))
    w = {name: value.numpy() for name, value in cell.named_parameters()}
    r = before.r[:, 0].numpy()

    def sigmoid(values: Any) -> Any:
        return 1 / (1 + np.exp(-values))

    from_x, from_r = x.numpy() @ w["weight_ih"].T + w["bias"], r @ w["weight_rh"].T
    i, _, c, o = np.split((from_x + from_r)[..., :28], 4, -1)
    if reset_gates:
        beta = sigmoid((from_x + from_r)[..., 29:] / 0.3)
        c = from_x[..., 14:21] + beta * from_r[..., 14:21]
    h = sigmoid(o) * np.tanh(sigmoid(i) * np.tanh(c))
    expected = np.tanh(h @ w["output_hh"].T + w["output_bias"] + r @ w["output_rh"].T)
    torch.testing.assert_close(found, torch.from_numpy(expected))
    torch.testing.assert_close(found[:1], whole[:1])  # there is no past at the first step
    assert not torch.allclose(found[1:], whole[1:])
    torch.testing.assert_close(layer(x)[0], whole)
