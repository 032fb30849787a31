"""Samples as learners, memories and tasks pass them around: samples first, always."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from attractor.errors import InputError

IGNORE = -100
"""The label of a step at which nothing is asked."""


@dataclass(slots=True, eq=False)
class Batch:
    """Some samples of one task or of several.

    Args:
        x: what the model is shown; a tensor, or a tuple of tensors such as two sentences.
        y: what it should answer.
        lengths: how much of each padded sequence counts.
        task: the place in the stream of each sample's task.
        weight: the share of each sample in the loss; ``None`` means all the same, 1 in sum.
        continues: whether each sequence goes on where that of the batch before ended, so that a
            model that carries a state keeps it.
        raw: the inputs as they are stored, before they are read and made noisy, where a memory is
            to keep those instead.

    Shape:
        x ``(samples, ...)``, as sequences ``(samples, time, features)``; y ``(samples,)`` for one
        answer each, or ``(samples, time)`` for one at each step, `IGNORE` where none is asked; the
        others ``(samples,)``.

    Example:
        >>> some = Batch(torch.zeros(4, 3, 1), torch.zeros(4))
        >>> len(some[:2]), some.inputs.shape
        (2, torch.Size([4, 3, 1]))
        >>> Batch(some.x, some.y, lengths=torch.tensor([1, 3, 2, 2])).inputs.batch_sizes
        tensor([4, 3, 1])
    """

    x: Any
    y: Any
    lengths: Tensor | None = None
    task: Tensor | None = None
    weight: Tensor | None = None
    continues: bool = False
    raw: Tensor | None = None

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: Tensor | slice) -> "Batch":
        """Some of the samples, which go on with nothing: a carried state is that of them all."""
        return replace(self.map(lambda t: t[index]), continues=False)

    def map(self, change: Callable[[Tensor], Tensor]) -> "Batch":
        """The same change to every tensor that is there."""
        return Batch(
            tuple(map(change, self.x)) if isinstance(self.x, tuple) else change(self.x),
            change(self.y),
            None if self.lengths is None else change(self.lengths),
            None if self.task is None else change(self.task),
            None if self.weight is None else change(self.weight),
            self.continues,
            None if self.raw is None else change(self.raw),
        )

    def to(self, device: torch.device | str) -> "Batch":
        """The batch where a model is; itself if it is there."""
        return self if self.y.device == torch.device(device) else self.map(lambda t: t.to(device))

    @property
    def places(self) -> Tensor:
        """The place in the stream of each sample's task, once it is known to be told."""
        if self.task is None:
            raise InputError(
                "expected a batch that tells the task of each sample, but it does not. "
                "Try Batch(x, y, task=torch.full((len(y),), place))."
            )
        return self.task

    @property
    def features(self) -> tuple[int, ...]:
        """The size of a sample; of a sequence, that of a step."""
        x = self.x[0] if isinstance(self.x, tuple) else self.x
        return tuple(x.shape[2:] if x.ndim == 3 else x.shape[1:])

    @property
    def inputs(self) -> Any:
        """What the model reads: ragged sequences are packed."""
        if self.lengths is None:
            return self.x
        packed: PackedSequence = pack_padded_sequence(
            self.x, _checked(self.lengths.cpu(), self.x), batch_first=True, enforce_sorted=False
        )
        return packed


def _checked(lengths: Tensor, x: Tensor) -> Tensor:
    """The lengths, once they are known to be those of the sequences; torch takes longer ones."""
    if lengths.shape != x.shape[:1] or lengths.is_floating_point():
        raise InputError(
            f"expected the length of each of {len(x)} sequences as a whole number, but got "
            f"{lengths.dtype} of shape {tuple(lengths.shape)}. Try lengths.long(), one for each."
        )
    low, high = (int(end) for end in lengths.aminmax()) if len(lengths) else (1, 1)
    if low < 1 or high > x.shape[1]:
        raise InputError(
            f"expected lengths from 1 to {x.shape[1]}, the steps of x, but got {low} to {high}. "
            "Try sequences of at least one step, padded to the longest."
        )
    return lengths.long()


def joined(parts: Sequence[Batch]) -> Batch:
    """Several batches as one, which goes on with nothing; sequences are padded to the longest.

    Example:
        >>> short, long = (Batch(torch.zeros(2, n, 1), torch.zeros(2)) for n in (3, 5))
        >>> joined([short, long]).x.shape
        torch.Size([4, 5, 1])
    """
    if len(parts) == 1:
        return parts[0]
    columns = {one.name: [getattr(part, one.name) for part in parts] for one in fields(Batch)}
    x, y, _ = columns.pop("x"), columns.pop("y"), columns.pop("continues")
    raw = columns.pop("raw")
    rest: dict[str, Any] = {
        name: torch.cat(some) if (some := [c for c in column if c is not None]) else None
        for name, column in columns.items()
    }
    pairs = isinstance(x[0], tuple)
    shown = tuple(map(stacked, zip(*x, strict=True))) if pairs else stacked(x)
    kept = None if any(one is None for one in raw) else stacked(raw)
    return Batch(shown, stacked(y, IGNORE), raw=kept, **rest)


def stacked(rows: Sequence[Tensor], fill: float = 0) -> Tensor:
    """Rows below rows; where a second dimension differs, the shorter ones are filled up."""
    if rows[0].ndim > 1:
        longest = max(x.shape[1] for x in rows)
        behind = [0, 0] * (rows[0].ndim - 2) + [0]
        rows = [
            x if x.shape[1] == longest else F.pad(x, [*behind, longest - x.shape[1]], value=fill)
            for x in rows
        ]
    return torch.cat(list(rows))
