"""Sequences of several lengths as rows: the form in which torch packs them."""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate, pairwise

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from attractor.errors import InputError, shortened


class Ragged:
    """How the rows of a ``PackedSequence`` fall into steps and sequences.

    A step has one row for each sequence that is still running, from the longest to the shortest.

    Args:
        running: how many are running at each step.

    Example:
        >>> ragged = Ragged([3, 1])
        >>> ragged.lengths.tolist(), ragged.turned.tolist()
        ([2, 1, 1], [3, 1, 2, 0])
        >>> ragged.pad(torch.arange(1, 5))
        tensor([[1, 2, 3],
                [4, 0, 0]])
        >>> ragged.pack(ragged.pad(torch.arange(1, 5)))
        tensor([1, 2, 3, 4])
    """

    def __init__(self, running: list[int]) -> None:
        self.running = tuple(running)

    @property
    def steps(self) -> int:
        """Of the longest sequence."""
        return len(self.running)

    @property
    def batch(self) -> int:
        """How many sequences there are."""
        return self.running[0]

    @cached_property
    def lengths(self) -> Tensor:
        """Of the sequences ``(batch,)``."""
        ends = [now - then for now, then in zip(self.running, (*self.running[1:], 0), strict=True)]
        steps = torch.arange(self.steps, 0, -1)
        return steps.repeat_interleave(torch.tensor(ends[::-1]))

    @cached_property
    def _places(self) -> tuple[Tensor, Tensor, Tensor]:
        """The step and the sequence of each row, and the first row of each step."""
        running = torch.tensor(self.running)
        first = torch.tensor([0, *accumulate(self.running)][:-1])
        steps = torch.arange(self.steps).repeat_interleave(running)
        return steps, torch.arange(len(steps)) - first[steps], first

    @cached_property
    def turned(self) -> Tensor:
        """The row of the same sequence that is as far from its end, for each row ``(rows,)``."""
        steps, sequences, first = self._places
        return first[self.lengths[sequences] - 1 - steps] + sequences

    def reverse(self, rows: Tensor) -> Tensor:
        """Reverse time, each sequence within its own length."""
        return rows.index_select(0, self.turned.to(rows.device))

    def pad(self, rows: Tensor) -> Tensor:
        """Rows as ``(time, batch, ...)``, with zeros after the end of a sequence."""
        steps, sequences, _ = self._places
        padded = rows.new_zeros(self.steps * self.batch, *rows.shape[1:])
        at = (steps * self.batch + sequences).to(rows.device)
        return padded.index_copy(0, at, rows).view(self.steps, self.batch, *rows.shape[1:])

    def pack(self, padded: Tensor) -> Tensor:
        """The way back, from ``(time, batch, ...)`` to rows."""
        steps, sequences, _ = self._places
        at = (steps * self.batch + sequences).to(padded.device)
        return padded.flatten(0, 1).index_select(0, at)


def ragged_of(packed: PackedSequence) -> Ragged:
    """How the rows of a packed sequence fall, once they are known to be those that it tells of.

    Kernels take its word for how many rows there are, and torch does not check it:
    ``pack_padded_sequence`` takes lengths beyond the end.

    Example:
        >>> from torch.nn.utils.rnn import pack_sequence
        >>> ragged_of(pack_sequence([torch.zeros(2, 3), torch.zeros(1, 3)])).running
        (2, 1)
    """
    running, rows = packed.batch_sizes.tolist(), packed.data.shape[0]
    if not running or not rows:
        raise InputError(
            "expected a PackedSequence of sequences with at least one step each, but it is "
            "empty. Drop empty sequences before you pack."
        )
    if packed.data.dim() != 2:
        raise InputError(
            "expected a PackedSequence with data of (rows, features), but got the shape "
            f"{tuple(packed.data.shape)}. Try sequences of (time, features) each."
        )
    if sum(running) != rows:
        raise InputError(
            f"expected a PackedSequence of as many rows as its batch_sizes tell of, "
            f"{sum(running)}, but it has {rows}. Try lengths of at most the steps that there are."
        )
    if running[-1] < 1 or any(now < later for now, later in pairwise(running)):
        raise InputError(
            "expected the batch_sizes of a PackedSequence to be above zero and never to grow, but "
            f"got {shortened(running)}. Try pack_sequence."
        )
    for order in (packed.sorted_indices, packed.unsorted_indices):
        if order is not None and order.shape != (running[0],):
            raise InputError(
                f"expected a PackedSequence that orders its {running[0]} sequences, but its "
                f"indices have the shape {tuple(order.shape)}. Try pack_sequence."
            )
    return Ragged(running)
