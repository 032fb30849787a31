"""A table of a fixed number of rows, whatever the shapes of its columns."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from attractor.errors import InputError
from attractor.tasks import IGNORE

Columns = tuple[Tensor, ...]
"""Samples as columns: inputs, answers, lengths and so on, all with the samples first."""


ANSWERS = 1
"""The column that has the answers."""

SPARSE = 50
"""How many times as many there must be as are drawn, for all to be shuffled no more."""


class Store:
    """Rows at numbered places; the memory is taken when the first ones come, then stays the same.

    Sequences may be of different lengths from one call to the next: shorter ones are padded at the
    end, with zeros, and answers at each step with `IGNORE`. The table grows only when a sequence is
    longer than all before it.

    Args:
        capacity: how many rows.

    Example:
        >>> store = Store(3)
        >>> store.write(torch.tensor([2, 0]), (torch.eye(2), torch.tensor([7, 8])))
        >>> store.read(torch.tensor([2]))
        (tensor([[1., 0.]]), tensor([7]))
        >>> store.nbytes  # 3 rows of 2 x 4 + 8 bytes
        48
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise InputError(
                f"expected a memory of at least 1 sample, but got {capacity}. Try 250."
            )
        self.capacity = capacity
        self.columns: Columns = ()

    def write(self, places: Tensor | slice, rows: Columns) -> None:
        """Put rows at places, over what was there."""
        if not self.columns:
            self.columns = tuple(
                torch.zeros(self.capacity, *c.shape[1:], dtype=c.dtype, device=c.device)
                for c in rows
            )
        if len(rows) != len(self.columns):
            raise InputError(
                f"expected rows of {len(self.columns)} columns, as the first ones, but got "
                f"{len(rows)}. Give all samples lengths, or none."
            )
        for place, (column, new) in enumerate(zip(self.columns, rows, strict=True)):
            self._write(place, column, places, new)

    def _write(self, place: int, column: Tensor, places: Tensor | slice, new: Tensor) -> None:
        if new.ndim > 1 and new.shape[1] != column.shape[1]:
            longest = max(new.shape[1], column.shape[1])
            fill = IGNORE if place == ANSWERS else 0
            column, new = (_padded(t, longest, fill) for t in (column, new))
            self.columns = (*self.columns[:place], column, *self.columns[place + 1 :])
        if new.shape[1:] != column.shape[1:]:
            raise InputError(
                f"expected samples of shape {tuple(column.shape[1:])}, as the first ones in the "
                f"memory, but got {tuple(new.shape[1:])}. Use one memory per kind of input."
            )
        if isinstance(places, slice):
            column[places] = new.detach()
        else:
            column.index_copy_(0, places.to(column.device), new.detach())

    def read(self, places: Tensor | slice) -> Columns:
        """The rows at places."""
        if isinstance(places, slice):
            return tuple(column[places] for column in self.columns)
        # five times as fast as an index in brackets
        return tuple(column.index_select(0, places.to(column.device)) for column in self.columns)

    @property
    def nbytes(self) -> int:
        """The memory that is taken."""
        return sum(column.nbytes for column in self.columns)

    def state_dict(self) -> dict[str, Tensor]:
        """The columns by their number."""
        return {str(place): column.clone() for place, column in enumerate(self.columns)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Take over the rows of another store of the same capacity."""
        columns: Sequence[Tensor] = [state[str(place)] for place in range(len(state))]
        for column in columns:
            if len(column) != self.capacity:
                raise InputError(
                    f"expected a memory of {self.capacity} samples, but the state holds "
                    f"{len(column)}. Resume with the memory that was saved."
                )
        self.columns = tuple(column.clone() for column in columns)


def distinct(count: int, size: int, generator: Generator) -> Tensor:
    """Numbers below `size`, all different and equally likely; all of them, if there are not enough.

    Few of many are drawn one by one, so that a large memory costs no more than a small one.

    Example:
        >>> len(set(distinct(5, 10000, torch.Generator().manual_seed(0)).tolist()))
        5
    """
    if size <= SPARSE * count:
        return torch.randperm(size, generator=generator)[:count]
    found: dict[int, None] = {}
    while len(found) < count:
        drawn = torch.randint(size, (count - len(found),), generator=generator)
        found.update(dict.fromkeys(drawn.tolist()))
    return torch.tensor(list(found))


def _padded(x: Tensor, length: int, fill: float) -> Tensor:
    behind = [0, 0] * (x.ndim - 2) + [0, length - x.shape[1]]
    return F.pad(x, behind, value=fill)
