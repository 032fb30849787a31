"""A stack of cells whose batch is the coordinates of a network: what recurrent rules share."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from torch import Generator, Tensor, nn

from attractor.cells import CELLS, Cell, LSTMCell, LSTMState
from attractor.cells.base import positive
from attractor.cells.init import uniform_
from attractor.cells.kernels.fused import untouched
from attractor.cells.layer.unroll import unroll_rows
from attractor.optimisers.fused import Weights, has_kernel, step
from attractor.optimisers.rules.preprocess import preprocess
from attractor.optimisers.state import map_tensors
from attractor.optimisers.view import View
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
        """The state of every coordinate before the first step, laid out for its kernel."""
        k, n = params.shape
        started = [cell.initial_state(k * n) for cell in self.cells]  # type: ignore[operator]

        def by_units(s: Tensor) -> Tensor:
            s = s.view(k, n, *s.shape[1:])
            return s.mT.contiguous().mT if plain else s

        plain = all(_is_plain_lstm(cell) for cell in self.cells)
        return map_tensors(by_units, tuple(started))

    @property
    def streams(self) -> bool:
        """Whether `read` is a kernel's work."""
        return has_kernel(len(self.cells)) and all(_is_plain_lstm(cell) for cell in self.cells)

    def forward(self, x: Tensor, state: Any, steps: int = 1) -> tuple[Tensor, Any]:
        """One step, or several on the same input; the last output and the state after them."""
        k, n, _ = x.shape
        h = x.flatten(0, 1).expand(steps, k * n, -1)
        after = []
        for cell, before in zip(self.cells, state, strict=True):
            assert isinstance(cell, Cell)
            rows = map_tensors(lambda s: s.flatten(0, 1), before)
            # not by the kernel of a sequence: for a step or two it gains nothing
            done = unroll_rows(cell, h, rows, None, False)
            h = done.output
            after.append(map_tensors(lambda s: s.view(k, n, *s.shape[1:]), done.state))
        return h[-1].view(k, n, -1), tuple(after)

    def read(
        self, grads: Tensor, state: Any, p: float, head: nn.Linear | None, view: View
    ) -> tuple[Tensor, Any]:
        """What the head says of each coordinate after a step on the preprocessed gradients.

        In one pass over memory, where there is a kernel for it.

        Args:
            grads: of the learners' losses.
            state: of the cells.
            p: of `preprocess`.
            head: from the last hidden state to one number; None if it is that number.
            view: says whether the state may be overwritten.

        Shape:
            grads and the result ``(learners, coordinates)``.
        """
        if all(_is_plain_lstm(cell) for cell in self.cells):
            layers: Any = tuple((c.weight_ih, c.weight_hh, c.bias) for c in self.cells)
            weights = Weights(layers) if head is None else Weights(layers, (head.weight, head.bias))
            leaves = [s for layer in state for s in layer]
            found = step(weights, grads, leaves, p, overwrite=view.overwrite)
            if found is not None:
                said, new = found
                return said, tuple(LSTMState(*new[i : i + 2]) for i in range(0, len(new), 2))
        h, after = self(preprocess(grads, p), state)
        return (h if head is None else head(h)).squeeze(-1), after


def _is_plain_lstm(cell: nn.Module) -> bool:
    return (
        type(cell) is LSTMCell
        and untouched(cell)
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
