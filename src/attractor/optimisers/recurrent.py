"""A stack of cells whose batch is the coordinates of a network: what recurrent rules share."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeGuard

import torch
from torch import Generator, Tensor, nn

from attractor.cells import CELLS, Cell, LSTMCell, LSTMState
from attractor.cells.base import positive
from attractor.cells.init import uniform_
from attractor.optimisers.state import map_tensors
from attractor.tables import lookup


class CellStack(nn.Module):
    """Cells on top of each other that go one step at a time, each coordinate on its own.

    Args:
        cell: a key of ``CELLS``, ``module:Class`` or a `Cell` class.
        input_size: features of a coordinate.
        hidden_size: units of each cell, or of one cell after the other.
        layers: how many cells, if all have as many units.
        generator: draws the initial weights.
        options: go to the cells.

    Shape:
        x ``(learners, coordinates, input_size)``; the output ``(learners, coordinates,
        hidden_size)``; each tensor of the state ``(learners, coordinates, ...)``.

    Example:
        >>> import torch
        >>> stack = CellStack("lstm", 2, 20, layers=2)
        >>> h, state = stack(torch.zeros(1, 5, 2), stack.start(torch.zeros(1, 5)))
        >>> h.shape
        torch.Size([1, 5, 20])
    """

    def __init__(
        self,
        cell: str | Callable[..., Cell[Any, Any]],
        input_size: int,
        hidden_size: int | Sequence[int],
        *,
        layers: int = 2,
        generator: Generator | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        made: Any = lookup("cell", CELLS, cell) if isinstance(cell, str) else cell
        if isinstance(hidden_size, int):
            hidden_size = [hidden_size] * positive(type(self), "layers", layers)
        self.cells = nn.ModuleList(
            made(reads, units, generator=generator, **options)
            for reads, units in pairwise([input_size, *hidden_size])
        )

    def start(self, params: Tensor) -> Any:
        """The state of every coordinate before the first step."""
        k, n = params.shape
        started = [cell.initial_state(k * n) for cell in self.cells]  # type: ignore[operator]
        return tuple(map_tensors(lambda s: s.view(k, n, *s.shape[1:]), one) for one in started)

    def forward(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        k, n, _ = x.shape
        h = x.flatten(0, 1)
        after = []
        for cell, before in zip(self.cells, state, strict=True):
            rows = map_tensors(lambda s: s.flatten(0, 1), before)
            if _is_plain_lstm(cell) and not torch.is_grad_enabled():
                h, new = gate_by_gate(cell, h, rows)
            else:
                h, new = cell(h, rows)
            after.append(map_tensors(lambda s: s.view(k, n, *s.shape[1:]), new))
        return h.view(k, n, -1), tuple(after)


def gate_by_gate(cell: LSTMCell, x: Tensor, state: LSTMState) -> tuple[Tensor, LSTMState]:
    """A step of a plain `LSTMCell`, in half the time: each gate is one piece of memory."""
    W, U = (w.view(4, cell.hidden_size, -1).mT for w in (cell.weight_ih, cell.weight_hh))
    assert cell.bias is not None
    sums = torch.baddbmm(cell.bias.view(4, 1, -1), x.expand(4, -1, -1), W)
    i, f, a, o = torch.baddbmm(sums, state.h.expand(4, -1, -1), U)
    c = torch.addcmul(f.sigmoid_() * state.c, i.sigmoid_(), a.tanh_())
    h = torch.tanh(c).mul_(o.sigmoid_())
    return h, LSTMState(h, c)


def _is_plain_lstm(cell: nn.Module) -> TypeGuard[LSTMCell]:
    return (
        type(cell) is LSTMCell
        and cell.bias is not None
        and cell.peephole is None
        and cell.weight_hr is None
    )


def head(inputs: int, outputs: int, generator: Generator | None, *, bias: bool = True) -> nn.Linear:
    """The linear layer from a hidden state to what a rule says, with weights as in nn.Linear."""
    made = nn.Linear(inputs, outputs, bias=bias)
    uniform_(made.weight, inputs**-0.5, generator)
    if bias:
        nn.init.zeros_(made.bias)
    return made


def silent(inputs: int, outputs: int, *, bias: bool = True) -> nn.Linear:
    """A linear layer that starts at zero: an untrained rule then moves nothing at random."""
    made = nn.Linear(inputs, outputs, bias=bias)
    for parameter in made.parameters():
        nn.init.zeros_(parameter)
    return made
