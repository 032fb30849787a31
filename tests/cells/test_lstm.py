import pytest

from attractor.cells import LSTMCell, LSTMState
from cells.against import array, blocks, check, random_cell
from reference import lstm


@pytest.mark.parametrize("peepholes", [False, True])
def test_equals_the_reference(peepholes: bool) -> None:
    cell = random_cell(LSTMCell, 3, 5, peepholes=peepholes)
    weights = blocks("W_x", "ifco", cell.weight_ih) | blocks("W_h", "ifco", cell.weight_hh)
    weights |= blocks("b_", "ifco", cell.bias)
    if peepholes:
        weights |= {f"w_c{gate}": array(cell.peephole[n]) for n, gate in enumerate("ifo")}
    check(cell, lstm.run, weights, {"h": 5, "c": 5}, LSTMState, peepholes=peepholes)
