"""What recurrent rules share: a stack of cells, and how their layers start."""

from typing import Any

import pytest
import torch

from attractor.optimisers.rules.recurrent import CellStack, head
from cells.against import normal
from contracts.cells import seeded


@pytest.mark.parametrize("options", [{"peepholes": True}, {"bias": False}])
def test_other_cells_take_their_own_step_without_a_graph(options: dict[str, Any]) -> None:
    stack = CellStack("lstm", 2, [4, 3], generator=seeded(), **options).double()
    for parameter in stack.parameters():
        torch.nn.init.normal_(parameter, generator=seeded(1))
    x, state = normal(2, 5, 2), stack.start(torch.zeros(2, 5).double())
    _, state = stack(x, state)
    wanted, _ = stack(-x, state)
    with torch.no_grad():
        found, _ = stack(-x, state)
    torch.testing.assert_close(found, wanted)


def test_the_head_starts_as_a_linear_layer_does_but_without_a_bias() -> None:
    made = head(16, 500, seeded())
    assert made.bias.eq(0).all()
    assert 0.24 < float(made.weight.detach().abs().max()) <= 0.25  # one over the root of 16
    assert float(made.weight.detach().std()) == pytest.approx(0.25 / 3**0.5, rel=0.02)
