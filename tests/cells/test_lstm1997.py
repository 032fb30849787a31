import torch

from attractor.cells import LSTM1997Cell, LSTMState, unroll
from cells.against import blocks, check, random_cell
from reference import lstm1997


def test_equals_the_reference() -> None:
    cell = random_cell(LSTM1997Cell, 3, 5)
    weights = blocks("W_", "IAO", cell.weight_ih) | blocks("U_", "IAO", cell.weight_hh)
    weights |= blocks("b_", "IAO", cell.bias)
    check(cell, lstm1997.run, weights, {"h": 5, "c": 5}, LSTMState)


def test_the_carousel_carries_the_gradient_whole() -> None:
    """With no way back through h, the gradient of c is the same however long ago."""
    cell = LSTM1997Cell(2, 4, dtype=torch.float64)
    with torch.no_grad():
        cell.weight_hh.zero_()
    c = torch.zeros(1, 4, dtype=torch.float64, requires_grad=True)
    state = LSTMState(torch.zeros_like(c), c)
    x = torch.randn(500, 1, 2, dtype=torch.float64)
    _, last, _ = unroll(cell, cell.prepare(x), state)
    (grad,) = torch.autograd.grad(last.c.sum(), c)
    torch.testing.assert_close(grad, torch.ones_like(grad), rtol=0, atol=0)


def test_starts_with_biases_of_zero() -> None:
    cell = LSTM1997Cell(3, 64)
    assert cell.bias is not None
    assert not cell.bias.any()
    assert 0.12 < cell.weight_hh.abs().max() <= 0.125
    assert not any(part.any() for part in cell.initial_state(2))
