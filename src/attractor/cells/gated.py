"""Cells made of gates, and where normalisers and dropout reach into their step."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attractor.cells.base import Cell, State

P = TypeVar("P")
S = TypeVar("S", bound=State)

Map = Callable[[Tensor], Tensor]

Biases = tuple[Tensor | int, ...]
"""The biases of a cell's sums, from the first sum on; a number stands for that many sums without.

Empty where the biases are added later in the step.
"""


def identity(x: Tensor) -> Tensor:
    """The map that changes nothing."""
    return x


class Maps(NamedTuple):
    """What is done within a step by whoever wraps a cell; by default nothing.

    ``candidate`` acts on what is about to be written, ``memory`` on what is about to be read, and
    ``inner`` on a product that is known only within the step, such as a GRU's
    :math:`W (r_t \\odot h_{t-1})`.
    """

    candidate: Map = identity
    memory: Map = identity
    inner: Map = identity


PLAIN = Maps()


class GatedCell(Cell[P, S]):
    """A cell whose step falls into what its state contributes and what is made of it.

    ``step(prepared, state)`` is ``activate(prepared, recurrent(prepared, state), state)``. Whoever
    wraps the cell may come in between, and may pass `Maps` to `activate`.
    """

    recurrent_weights: tuple[str, ...] = ("weight_hh",)

    memory_size: int = 0
    """Units that pass through the map for the memory; 0 if the cell shows all that it holds."""

    @abstractmethod
    def recurrent(self, prepared: P, state: S) -> Tensor:
        """What the state contributes to this step."""

    @abstractmethod
    def activate(
        self, prepared: P, recurrent: Tensor, state: S, maps: Maps = PLAIN
    ) -> tuple[Tensor, S]:
        """From both contributions and the old state to the output and the new state."""

    def step(self, prepared: P, state: S) -> tuple[Tensor, S]:
        return self.activate(prepared, self.recurrent(prepared, state), state)


class WrappedCell(GatedCell[Any, Any]):
    """A cell around a gated one, which does something to its step and shows itself as it."""

    recurrent_weights = ()  # those of the cell within are named there

    def __init__(self, cell: GatedCell[Any, Any]) -> None:
        super().__init__(cell.input_size, cell.hidden_size)
        self.cell = cell
        self.memory_size = cell.memory_size
        self.state_name = cell.state_name

    @property
    def output_size(self) -> int:
        return self.cell.output_size

    def initial_state(self, batch_size: int) -> Any:
        return self.cell.initial_state(batch_size)

    def resume(self, state: Any) -> Any:
        return self.cell.resume(state)


class Parts(NamedTuple):
    """The sizes of the parts, each normalised on its own, of a cell's sums.

    Those of what the input contributes, of what the state contributes, and of what passes through
    the map ``inner``.
    """

    x: tuple[int, ...]
    h: tuple[int, ...]
    inner: tuple[int, ...] = ()


def joined(biases: Biases, learned: Tensor | None = None) -> Tensor | None:
    """One shift for each sum: its bias, or else the next of `learned`, by default zero.

    ``None`` if there is nothing to add.

    Example:
        >>> joined((2, torch.tensor([5.0]), 1), torch.tensor([1.0, 2.0, 3.0]))
        tensor([1., 2., 5., 3.])
        >>> joined((2, torch.tensor([5.0])))
        tensor([0., 0., 5.])
        >>> joined((4,)) is None
        True
    """
    if learned is None:
        given = [bias for bias in biases if isinstance(bias, Tensor)]
        if not given:
            return None
        learned = given[0].new_zeros(missing(biases))
    parts, rest = [], learned
    for bias in biases:
        if isinstance(bias, Tensor):
            parts.append(bias)
        else:
            parts.append(rest[:bias])
            rest = rest[bias:]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def missing(biases: Biases) -> int:
    """How many sums have no bias."""
    return sum(bias for bias in biases if isinstance(bias, int))


class SummedCell(GatedCell[P, S]):
    """A gated cell all of whose gates read sums, ``W x + U h + b``, which can be normalised.

    The prepared input is the tensor ``W x + b`` or a NamedTuple in which that is called ``sums``.
    """

    weight_ih: nn.Parameter
    weight_hh: nn.Parameter
    bias: nn.Parameter | None

    def parts(self) -> Parts:
        """What is normalised on its own; by default all sums together."""
        rows = self.weight_ih.shape[0]
        return Parts((rows,), (rows,))

    def sums(self, x: Tensor, shift: Tensor | None = None) -> Tensor:
        """What the input contributes, with the biases or without."""
        return F.linear(x, self.weight_ih, shift)

    def biases(self) -> Biases:
        """The biases of the sums."""
        return (sum(self.parts().x) if self.bias is None else self.bias,)

    def shift(self) -> Tensor | None:
        """The biases as one vector, or ``None``."""
        return joined(self.biases())

    def arrange(self, sums: Tensor, x: Tensor, lengths: Tensor | None) -> P:
        """The prepared input: the sums, and what else of x `activate` needs."""
        return cast(P, sums)

    def prepare(self, x: Tensor) -> P:
        return self.arrange(self.sums(x, self.shift()), x, None)

    def prepare_ragged(self, x: Tensor, lengths: Tensor) -> P:
        return self.arrange(self.sums(x, self.shift()), x, lengths)

    def recurrent(self, prepared: P, state: S) -> Tensor:
        h: Any = state
        return F.linear(h if isinstance(h, Tensor) else h.h, self.weight_hh)


def map_sums(function: Map, prepared: Any) -> Any:
    """Apply `function` to the sums within the prepared input of a `SummedCell`."""
    if isinstance(prepared, Tensor):
        return function(prepared)
    return prepared._replace(sums=function(prepared.sums))
