import pytest

from attractor.cells import GRUCell
from cells.against import array, blocks, check, random_cell
from reference import gru


@pytest.mark.parametrize("reset", ["before", "after"])
def test_equals_the_reference(reset: str) -> None:
    cell = random_cell(GRUCell, 3, 5, reset=reset)
    weights = blocks("W_x", "rzh", cell.weight_ih) | blocks("W_h", "rzh", cell.weight_hh)
    weights |= blocks("b_", "rzh", cell.bias)
    if reset == "after":
        weights["b_hh"] = array(cell.bias_hh)
    check(cell, gru.run, weights, {"h": 5}, lambda h: h, reset_after=reset == "after")
