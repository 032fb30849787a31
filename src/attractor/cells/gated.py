"""Cells made of gates, and where normalisers and dropout reach into their step."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attractor.cells.base import Cell, State

P = TypeVar("P")
S = TypeVar("S", bound=State)

Map = Callable[[Tensor], Tensor]

Linear = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""From x, W and b to W x + b, as ``F.linear``."""

Biases = tuple[Tensor | int, ...]
"""The biases of a cell's sums, from the first sum on; a number stands for that many sums without.

Empty where the biases are added later in the step.
"""


def identity(x: Tensor) -> Tensor:
    """The map that changes nothing."""
    return x


class Taps(NamedTuple):
    """Where whoever wraps a cell may change what flows through its step; by default nowhere.

    ``x`` and ``h`` are on what the input and the state contribute to the gates; ``inner`` is on a
    product that is known only within the step, such as a GRU's :math:`W (r_t \\odot h_{t-1})`;
    ``candidate`` is on what is about to be written, ``memory`` on what is about to be read;
    ``read`` is on what a read from an external memory contributes to the gates.
    """

    x: Map = identity
    h: Map = identity
    inner: Map = identity
    candidate: Map = identity
    memory: Map = identity
    read: Map = identity


PLAIN = Taps()


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


class Sites(NamedTuple):
    """How many numbers pass through each tap, in the parts that are normalised on their own."""

    x: tuple[int, ...]
    h: tuple[int, ...]
    inner: tuple[int, ...] = ()
    memory: int = 0
    read: tuple[int, ...] = ()


class GatedCell(Cell[P, S]):
    """A cell with `Taps` in its step, and gates that read sums, ``W x + U h + b``.

    ``W x + b`` is computed by `prepare` and passes the tap ``x`` in `step`, ``U h`` the tap ``h``.
    """

    recurrent_weights: tuple[str, ...] = ("weight_hh",)
    weight_ih: nn.Parameter
    bias: nn.Parameter | None

    @abstractmethod
    def prepare(self, x: Tensor, linear: Linear = F.linear) -> P:
        """As any cell's, with the sums from `linear`: a normaliser gives one of its own."""

    def prepare_ragged(self, x: Tensor, lengths: Tensor, linear: Linear = F.linear) -> P:
        return self.prepare(x, linear)

    @abstractmethod
    def step(self, prepared: P, state: S, tap: Taps = PLAIN) -> tuple[Tensor, S]:
        """As any cell's, through the taps."""

    def sites(self) -> Sites:
        """What is normalised; by default all sums together."""
        rows = self.weight_ih.shape[0]
        return Sites((rows,), (rows,))

    def biases(self) -> Biases:
        """The biases of the sums."""
        return (sum(self.sites().x) if self.bias is None else self.bias,)


class WrappedCell(Cell[Any, Any]):
    """A cell around a gated one, which does something to its step and shows itself as it."""

    def __init__(self, cell: "AnyGated") -> None:
        super().__init__(cell.input_size, cell.hidden_size)
        self.cell = cell
        self.state_name = cell.state_name
        self.fixed_state = cell.fixed_state

    @property
    def output_size(self) -> int:
        return self.cell.output_size

    def initial_state(self, batch_size: int) -> Any:
        return self.cell.initial_state(batch_size)

    def state_names(self) -> list[str]:
        return self.cell.state_names()

    def resume(self, state: Any) -> Any:
        return self.cell.resume(state)

    @abstractmethod
    def step(self, prepared: Any, state: Any, tap: Taps = PLAIN) -> tuple[Tensor, Any]:
        """As that of the cell within, through the taps."""


AnyGated = GatedCell[Any, Any] | WrappedCell
"""Any cell with taps, wrapped or not."""
