"""Cells made of gates, and where normalisers and dropout reach into their step."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast

import torch.nn.functional as F
from torch import Tensor, nn

from attractor.cells.base import Cell, State

P = TypeVar("P")
S = TypeVar("S", bound=State)

Map = Callable[[Tensor], Tensor]


def identity(x: Tensor) -> Tensor:
    """The map that changes nothing."""
    return x


class GatedCell(Cell[P, S]):
    """A cell whose step falls into what its state contributes and what is made of it.

    ``step(prepared, state)`` is ``activate(prepared, recurrent(state), state)``. Whoever wraps
    the cell may come in between, and may pass two maps to `activate`: one for the candidate (what
    is about to be written) and one for the memory (what is about to be read).
    """

    recurrent_weights: ClassVar[tuple[str, ...]] = ("weight_hh",)
    """Names of the matrices that act on the state."""

    memory_size: int = 0
    """Units that pass through the map for the memory; 0 if the cell shows all that it holds."""

    @abstractmethod
    def recurrent(self, state: S) -> Tensor:
        """What the state contributes to this step."""

    @abstractmethod
    def activate(
        self,
        prepared: P,
        recurrent: Tensor,
        state: S,
        *,
        candidate: Map = identity,
        memory: Map = identity,
    ) -> tuple[Tensor, S]:
        """From both contributions and the old state to the output and the new state."""

    def step(self, prepared: P, state: S) -> tuple[Tensor, S]:
        return self.activate(prepared, self.recurrent(state), state)


class SummedCell(GatedCell[P, S]):
    """A gated cell all of whose gates read sums, ``W x + U h + b``, which can be normalised.

    The prepared input is the tensor ``W x + b`` or a NamedTuple in which that is called ``sums``.
    """

    weight_ih: nn.Parameter
    weight_hh: nn.Parameter
    bias: nn.Parameter | None

    def check_sums(self) -> None:
        """Raise if the state also acts where `recurrent` does not show it."""

    def shift(self) -> Tensor | None:
        """The biases, as long as the sums, or ``None``."""
        return self.bias

    def arrange(self, sums: Tensor, x: Tensor, lengths: Tensor | None) -> P:
        """The prepared input: the sums, and what else of x `activate` needs."""
        return cast(P, sums)

    def prepare(self, x: Tensor) -> P:
        return self.arrange(F.linear(x, self.weight_ih, self.shift()), x, None)

    def prepare_ragged(self, x: Tensor, lengths: Tensor) -> P:
        return self.arrange(F.linear(x, self.weight_ih, self.shift()), x, lengths)

    def recurrent(self, state: S) -> Tensor:
        h: Any = state
        return F.linear(h if isinstance(h, Tensor) else h.h, self.weight_hh)


def map_sums(function: Map, prepared: Any) -> Any:
    """Apply `function` to the sums within the prepared input of a `SummedCell`."""
    if isinstance(prepared, Tensor):
        return function(prepared)
    return prepared._replace(sums=function(prepared.sums))
