import pytest
import torch

from attractor.cells import JANETCell, Recurrent
from cells.against import blocks, check, random_cell
from reference import janet


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_equals_the_reference(beta: float) -> None:
    cell = random_cell(JANETCell, 3, 5, beta=beta)
    weights = blocks("W_x", "fh", cell.weight_ih) | blocks("W_h", "fh", cell.weight_hh)
    weights |= blocks("b_", "fh", cell.bias)
    check(cell, janet.run, weights, {"h": 5}, lambda h: h, beta=beta)


@pytest.mark.filterwarnings("ignore")
def test_compiles_with_a_beta_that_is_no_whole_number() -> None:
    layer = Recurrent("janet", 3, 4, beta=0.3)
    torch.compiler.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="eager", dynamic=True)
    x = torch.randn(5, 2, 3)
    torch.testing.assert_close(compiled(x), layer(x))
