import math

import pytest
import torch

from attractor.cells import FastGRNNCell
from cells.against import array, blocks, check, random_cell
from reference import fastgrnn


@pytest.mark.parametrize("shared", [False, True])
def test_equals_the_reference(shared: bool) -> None:
    cell = random_cell(FastGRNNCell, 3, 5, shared=shared)
    names = "" if shared else "FA"
    weights = blocks("W_", names, cell.weight_ih) if names else {"W": array(cell.weight_ih)}
    weights |= blocks("U_", names, cell.weight_hh) if names else {"U": array(cell.weight_hh)}
    weights |= blocks("b_", "FA", cell.bias)
    weights |= {"u_beta": array(cell.beta_raw), "u_kappa": array(cell.kappa_raw)}
    check(cell, fastgrnn.run, weights, {"h": 5}, lambda h: h, shared=shared)


def test_initial_values() -> None:
    cell = FastGRNNCell(3, 5, forget_bias=2.0)
    assert cell.bias is not None
    assert cell.bias.tolist() == [2.0] * 5 + [0.0] * 5
    assert (cell.beta_raw.item(), cell.kappa_raw.item()) == (1.0, -4.0)
    chrono = FastGRNNCell(3, 100, t_max=50, generator=torch.Generator().manual_seed(0))
    assert chrono.bias is not None
    f, a = chrono.bias.detach().chunk(2)
    assert 0 <= f.min() < f.max() <= math.log(49)
    assert not a.any()


@pytest.mark.parametrize("shared", [False, True])
def test_without_biases(shared: bool) -> None:
    cell = FastGRNNCell(3, 5, bias=False, shared=shared)
    output, _ = cell(torch.zeros(2, 3), cell.initial_state(2))
    assert not output.any()
