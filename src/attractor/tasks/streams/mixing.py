"""Streams whose tasks run into each other, and streams that keep some samples for validation."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import torch
from torch import Generator, Tensor

from attractor.checks import number
from attractor.errors import InputError
from attractor.tasks.arrays import Data
from attractor.tasks.base import Split
from attractor.tasks.batch import Batch, joined
from attractor.tasks.stored import StoredTask
from attractor.tasks.streams.stream import Stream


class Blurred(StoredTask):
    """A task at whose time samples of other tasks come too; each still knows its own.

    Args:
        tasks: of the stream.
        place: of this one among them; its held-out samples are this one's.
        sources: the task of each training sample.
        numbers: of each training sample in its own task.
    """

    def __init__(
        self, tasks: Sequence[StoredTask], place: int, sources: Tensor, numbers: Tensor
    ) -> None:
        self.tasks, self.place, self.sources, self.numbers = tasks, place, sources, numbers
        own = tasks[place]
        self.name, self.test, self.train = own.name, own.test, None
        self.input_size, self.output_size, self.timed = own.input_size, own.output_size, own.timed
        self.answers, self.measures = own.answers, own.measures  # type: ignore[misc]
        self.score, self.asks_classes = own.score, own.asks_classes
        self.block, self.keeps_raw = own.block, own.keeps_raw
        among = torch.unique(sources).tolist()
        self.classes = tuple(sorted({label for one in among for label in tasks[one].classes}))

    @property
    def features(self) -> tuple[int, ...]:
        return self.tasks[self.place].features

    def __len__(self) -> int:
        return len(self.sources)

    def samples(self, index: Tensor, generator: Generator | None = None) -> Batch:
        sources, order = self.sources[index].sort(stable=True)
        index = self.numbers[index][order]
        parts = [
            self.tasks[place].samples(index[sources == place], generator)
            for place in torch.unique(sources).tolist()
        ]
        return joined(parts)[order.argsort()]

    def see(self, stored: Tensor, generator: Generator | None = None) -> Tensor:
        return self.tasks[self.place].see(stored, generator)

    def held_out(self, split: Split, size: int) -> Iterator[Batch]:
        return self.tasks[self.place].held_out(split, size)

    def first(self, split: Split, count: int) -> Batch:
        return self.tasks[self.place].first(split, count)

    def loss(self, model: Any, batch: Batch) -> Tensor:
        return self.tasks[self.place].loss(model, batch)

    def measure(self, model: Any, batch: Batch) -> dict[str, tuple[float, int]]:
        return self.tasks[self.place].measure(model, batch)

    def told(self, means: dict[str, float]) -> dict[str, float]:
        return self.tasks[self.place].told(means)

    def at(self, place: int) -> Self:
        if place != self.place:
            raise InputError(
                f"expected the task {self.name!r} to stay at its place, {self.place}, but got "
                f"{place}: it holds samples of its neighbours. Choose tasks first, then blur."
            )
        return self

    def feed(self, digest: Any) -> None:
        self.tasks[self.place].feed(digest)
        digest.update(self.sources.numpy().tobytes() + self.numbers.numpy().tobytes())


def blurred(stream: Stream, share: float, *, generator: Generator) -> Stream:
    r"""The stream without sharp boundaries: a share of each task's samples comes at other times.

    Of n tasks, each gives away a share of its training samples, evenly to the times of the n - 1
    others, so that batches are mixed and classes come back. Samples keep their own task; what is
    held out stays as it is.

    Args:
        stream: the tasks.
        share: what each gives away; (n - 1) / n leaves no boundaries at all.
        generator: draws which samples go, and where to.

    Example:
        >>> from attractor.tasks.streams import split_images
        >>> stream = split_images(dataset="digits", size=5)
        >>> soft = blurred(stream, 0.3, generator=torch.Generator().manual_seed(0))
        >>> batch = soft[0].samples(torch.arange(len(soft[0])))
        >>> len(soft[0]) + len(soft[1]) == len(stream[0]) + len(stream[1]), soft[0].classes
        (True, (0, 1, 2, 3, 4, 5, 6, 7, 8, 9))
        >>> 0.2 < float((batch.y > 4).float().mean()) < 0.4
        True

    Departs from the paper: Bang et al. choose the classes that a task shares; here all of them are.

    References:
        Bang et al. (2021), Rainbow memory, arXiv:2103.17230, section 5.1.
    """
    number("share", share, 0, 1)
    if len(stream) < 2:
        raise InputError(
            f"expected a stream of at least 2 tasks to blur, but {stream.name!r} has one. Try "
            "more tasks."
        )
    sources: list[list[Tensor]] = [[] for _ in stream]
    numbers: list[list[Tensor]] = [[] for _ in stream]
    for place, task in enumerate(stream):
        order = torch.randperm(len(task), generator=generator)
        away = round(share * len(task))
        others = [other for other in range(len(stream)) if other != place]
        parts = [order[away:], *order[:away].tensor_split(len(others))]
        for time, part in zip([place, *others], parts, strict=True):
            sources[time].append(torch.full((len(part),), place))
            numbers[time].append(part)
    tasks = [
        Blurred(stream.tasks, place, torch.cat(sources[place]), torch.cat(numbers[place]))
        for place in range(len(stream))
    ]
    return replace(stream, name=f"{stream.name}, {100 * share:.10g}% blurred", tasks=tasks)


def with_valid(stream: Stream, share: float, *, generator: Generator) -> Stream:
    """The stream with a share of each task's training samples kept for validation instead.

    Args:
        stream: of tasks over arrays.
        share: of the training samples, at least one.
        generator: draws which.

    Example:
        >>> from attractor.tasks.streams import split_images
        >>> stream = split_images(dataset="digits", size=5)
        >>> held = with_valid(stream, 0.1, generator=torch.Generator().manual_seed(0))
        >>> len(stream[0]) - len(held[0]) == len(held[0].valid.y)
        True
    """
    number("share", share, 0, 1)
    tasks = []
    for task in stream.arrays():
        if task.valid is not None:
            raise InputError(
                f"expected a stream without validation samples, but {task.name!r} has some. "
                "Take them as they are."
            )
        count = max(1, round(share * len(task)))
        if count >= len(task):
            raise InputError(
                f"expected a share that leaves samples to train on, but {share:g} takes all "
                f"{len(task)} of {task.name!r}. Try 0.1."
            )
        order = torch.randperm(len(task), generator=generator)
        rest = order[count:].sort().values
        train, valid = _some(task.train, rest), _some(task.train, order[:count])
        tasks.append(replace(task, train=train, valid=valid))
    return replace(stream, tasks=tasks)


def _some(data: Data, index: Tensor) -> Data:
    lengths = None if data.lengths is None else data.lengths[index]
    return Data(data.x[index], data.y[index], lengths)
