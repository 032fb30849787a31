"""Tasks of one kind, each harder than the one before."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import torch
from torch import Generator, Tensor, nn

from attractor.checks import whole
from attractor.tables import lookup, make
from attractor.tasks import (
    IGNORE,
    TASKS,
    Batch,
    BitTask,
    Generated,
    Sampler,
    Split,
    StoredTask,
    StrokeDigits,
)
from attractor.tasks.streams import Stream

KINDS: dict[str, dict[str, Any]] = {
    "copy": {"task": "ntm_copy", "size": ("most", "least"), "options": {"bits": 7}, "first": 5},
    "lags": {"task": "copy", "size": ("lag",), "options": {}, "first": 5},
    "recall": {"task": "ntm_recall", "size": ("most", "least"), "options": {}, "first": 5},
    "strokes": {"task": "strokes", "size": ("digits",), "options": {"train": 1}, "first": 1}
    | {"step": 1},
}
"""The task of each kind of levels, which of its options make it harder, and where it begins."""


class Level(StoredTask):
    """A task whose samples are made up, at its place among the levels.

    Args:
        task: what draws the samples, none of them twice.
        name: in words.
        place: from 0.

    Example:
        >>> from attractor.tasks import CopyMemory
        >>> level = Level(CopyMemory(lag=5), "lag 5", 0)
        >>> level.samples(torch.arange(3)).x.shape
        torch.Size([3, 25, 10])
    """

    block = 1

    def __init__(self, task: Generated | StrokeDigits, name: str, place: int) -> None:
        self.task, self.name, self.place = task, name, place
        self.input_size, self.output_size = task.input_size, task.output_size
        bits = isinstance(task, BitTask)  # vectors of them, and no classes
        self.classes, self.asks_classes = tuple(range(task.output_size)), not bits
        self.answers, self.measures = task.answers, task.measures  # type: ignore[misc]
        self.train = self.test = None

    def __len__(self) -> int:
        return 1000

    def samples(self, index: Tensor, generator: Generator | None = None) -> Batch:
        generator = generator or torch.Generator().manual_seed(int(index[0]))
        return self._placed(self.task.draw(len(index), generator=generator))

    def batches(self, size: int, *, generator: Generator) -> Sampler:
        return self.task.batches(size, generator=generator)

    def held_out(self, split: Split, size: int) -> Iterator[Batch]:
        return map(self._placed, self.task.held_out(split, size))

    def first(self, split: Split, count: int) -> Batch:
        return next(self.held_out(split, count))

    def at(self, place: int) -> Self:
        return type(self)(self.task, self.name, place)

    def feed(self, digest: Any) -> None:
        digest.update(self.name.encode())
        digest.update(self.first("test", 2).x.numpy().tobytes())

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.task.loss(model, trimmed(batch))

    def measure(self, model: nn.Module, batch: Batch) -> dict[str, tuple[float, int]]:
        return self.task.measure(model, trimmed(batch))

    def _placed(self, batch: Batch) -> Batch:
        batch.task = torch.full((len(batch),), self.place)
        return batch


def trimmed(batch: Batch) -> Batch:
    """Sequences without the steps after the last answer, with which a memory fills them up.

    Example:
        >>> y = torch.tensor([[1, IGNORE, IGNORE], [1, 1, IGNORE]])
        >>> trimmed(Batch(torch.zeros(2, 3, 4), y)).x.shape
        torch.Size([2, 2, 4])
    """
    if batch.y.ndim < 2 or batch.y.shape[1] != batch.x.shape[1]:
        return batch
    asked = (batch.y != IGNORE).flatten(2).any(-1) if batch.y.ndim > 2 else batch.y != IGNORE
    steps = int(asked.any(0).nonzero().max()) + 1
    return replace(batch, x=batch.x[:, :steps], y=batch.y[:, :steps])


class Levels(Stream):
    """Levels as a stream; their sequences have lengths of their own."""

    def __post_init__(self) -> None:
        """Nothing to check: they are of one kind."""


def levels(
    kind: str = "copy",
    *,
    first: int | None = None,
    step: int | None = None,
    count: int = 20,
    **options: Any,
) -> Levels:
    """The levels of a kind, from the easiest on.

    Args:
        kind: ``"copy"`` (vectors of 7 bits, 5, 8, ... 62 of them, said again after a delimiter) or
            ``"recall"`` (5, 8, ... 62 items of three vectors of 8 bits; one is shown again, and the
            next one is asked for), ``"strokes"`` (the pen strokes of 1, 2, ... 20 digits, to be
            named in their order), or ``"lags"`` (ten symbols after a silence that grows longer).
        first: the size of the first level.
        step: by how much each is larger; by default 3, and 1 for strokes.
        count: how many.
        options: of the task, such as ``bits``.

    Example:
        >>> [level.name for level in levels("lags", count=3)]
        ['lags 5', 'lags 8', 'lags 11']

    References:
        Chandar (2020), sections 5.3.1 to 5.3.3.
    """
    entry = lookup("kind of levels", KINDS, kind)
    start = entry["first"] if first is None else whole("first", first, 1)
    step = entry.get("step", 3) if step is None else whole("step", step, 1)
    sizes = range(start, start + step * whole("count", count, 1), step)
    made: Sequence[Level] = [
        Level(
            make(
                "task",
                TASKS,
                {"name": entry["task"], **entry["options"], **options}
                | dict.fromkeys(entry["size"], size),
            ),
            f"{kind} {size}",
            place,
        )
        for place, size in enumerate(sizes)
    ]
    return Levels(f"levels of {kind}", made)
