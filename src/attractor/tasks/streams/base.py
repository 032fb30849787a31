"""Streams: tasks that come one after the other, their data in memory, samples first."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, overload

import torch
import torch.nn.functional as F
from torch import Generator, Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from attractor.errors import InputError
from attractor.tasks.base import IGNORE


class Data(NamedTuple):
    """Samples as they are stored.

    Shape:
        x ``(samples, ...)``; y ``(samples,)``, or ``(samples, time)`` for an answer at each step;
        lengths ``(samples,)`` where sequences are padded at the end to a common length.
    """

    x: Tensor
    y: Tensor
    lengths: Tensor | None = None


@dataclass(slots=True, eq=False)
class Samples:
    """Some samples of one or several tasks, as learners and memories pass them around.

    Args:
        x: what the model is shown.
        y: what it should answer.
        task: the place in the stream of each sample's task.
        lengths: how much of each padded sequence counts.
        weight: the share of each sample in the loss; ``None`` means all the same, 1 in sum.

    Shape:
        x ``(samples, ...)``, y ``(samples,)`` or ``(samples, time)``, the others ``(samples,)``.

    Example:
        >>> some = Samples(torch.zeros(4, 3, 1), torch.zeros(4), torch.zeros(4))
        >>> len(some[:2]), some.inputs.shape
        (2, torch.Size([4, 3, 1]))
        >>> Samples(some.x, some.y, some.task, torch.tensor([1, 3, 2, 2])).inputs.batch_sizes
        tensor([4, 3, 1])
    """

    x: Tensor
    y: Tensor
    task: Tensor
    lengths: Tensor | None = None
    weight: Tensor | None = None

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: Tensor | slice) -> "Samples":
        return Samples(
            self.x[index],
            self.y[index],
            self.task[index],
            None if self.lengths is None else self.lengths[index],
            None if self.weight is None else self.weight[index],
        )

    def map(self, change: Callable[[Tensor], Tensor]) -> "Samples":
        """The same change to every column that is there."""
        return Samples(
            change(self.x),
            change(self.y),
            change(self.task),
            None if self.lengths is None else change(self.lengths),
            None if self.weight is None else change(self.weight),
        )

    @property
    def features(self) -> tuple[int, ...]:
        """The size of a sample; of a sequence, that of a step."""
        return tuple(self.x.shape[2:] if self.x.ndim == 3 else self.x.shape[1:])

    @property
    def inputs(self) -> Tensor | PackedSequence:
        """What the model reads: ragged sequences are packed."""
        if self.lengths is None:
            return self.x
        return pack_padded_sequence(
            self.x, self.lengths.cpu(), batch_first=True, enforce_sorted=False
        )


def joined(parts: Sequence[Samples]) -> Samples:
    """Several samples as one; padded sequences are padded to the longest.

    Example:
        >>> short, long = (Samples(torch.zeros(2, n, 1), *torch.zeros(3, 2)) for n in (3, 5))
        >>> joined([short, long]).x.shape
        torch.Size([4, 5, 1])
    """
    if len(parts) == 1:
        return parts[0]
    lengths = [part.lengths for part in parts if part.lengths is not None]
    weights = [part.weight for part in parts if part.weight is not None]
    return Samples(
        stacked([part.x for part in parts]),
        stacked([part.y for part in parts], IGNORE),
        torch.cat([part.task for part in parts]),
        torch.cat(lengths) if lengths else None,
        torch.cat(weights) if weights else None,
    )


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


def unchanged(x: Tensor) -> Tensor:
    """The rows as they are stored."""
    return x


@dataclass(frozen=True, eq=False)
class Experience:
    """One task of a stream: its data and how they are read.

    Args:
        name: in words, for tables and messages.
        task: its place in the stream, from 0; the identity that some learners are told.
        train: the training samples.
        test: the test samples.
        classes: the answers that occur, whole numbers from 0.
        read: turns stored rows into what the model is shown: a permutation, a rotation.
        noise: changes the training samples each time they are read, test samples never.
        keep: keep the test samples as they were read; else they are read piece by piece each time,
            which saves memory where `read` makes them much larger.

    Example:
        >>> data = Data(torch.randn(6, 4), torch.tensor([0, 1, 0, 1, 0, 1]))
        >>> task = Experience("flipped", 0, data, data, (0, 1), read=lambda x: x.flip(1))
        >>> torch.equal(task.test_samples.x, data.x.flip(1))
        True
    """

    name: str
    task: int
    train: Data
    test: Data
    classes: tuple[int, ...]
    read: Callable[[Tensor], Tensor] = unchanged
    noise: Callable[[Tensor, Generator], Tensor] | None = None
    keep: bool = True

    def __post_init__(self) -> None:
        if min(self.classes, default=0) < 0:
            raise InputError(
                f"expected classes from 0 on for the task {self.name!r}, each the place of an "
                f"output, but got {min(self.classes)}. Renumber them; {IGNORE} among the answers "
                "marks those that do not count."
            )
        object.__setattr__(self, "train", self._numbered(self.train))
        object.__setattr__(self, "test", self._numbered(self.test))
        for half, data in (("training", self.train), ("test", self.test)):
            if len(data.x) != len(data.y) or len(data.y) == 0:
                raise InputError(
                    f"expected {half} samples for the task {self.name!r}, an answer for each, but "
                    f"got {len(data.x)} inputs and {len(data.y)} answers. "
                    "Leave empty tasks out of the stream."
                )
            answers = set(torch.unique(data.y).tolist()) - {IGNORE}
            if not answers <= set(self.classes):
                raise InputError(
                    f"expected {half} answers of the task {self.name!r} among its classes, but got "
                    f"{sorted(answers - set(self.classes))[:5]}. Name all classes that occur."
                )

    def _numbered(self, data: Data) -> Data:
        """The data with answers as losses read them."""
        if data.y.dtype == torch.long:
            return data
        y = data.y.long()
        if not torch.equal(y.to(data.y.dtype), data.y):
            raise InputError(
                f"expected the number of a class as each answer of the task {self.name!r}, but got "
                f"{data.y.dtype} that are not whole. Number the classes from 0."
            )
        return data._replace(y=y)

    def samples(self, index: Tensor, generator: Generator | None = None) -> Samples:
        """Training samples by their rows; the generator draws the noise, if there is any."""
        x = self.read(self.train.x.index_select(0, index))
        if self.noise is not None and generator is not None:
            x = self.noise(x, generator)
        return self._samples(x, self.train, index)

    @cached_property
    def test_samples(self) -> Samples:
        """All test samples; they are read once and kept."""
        return self._read_test(slice(None))

    def some_test(self, count: int) -> Samples:
        """The first test samples, read for the moment: nothing is kept."""
        return self._read_test(slice(count))

    def held_out(self, batch_size: int) -> Iterator[Samples]:
        """The test samples piece by piece."""
        for start in range(0, len(self.test.y), batch_size):
            some = slice(start, start + batch_size)
            yield self.test_samples[some] if self.keep else self._read_test(some)

    def _read_test(self, some: slice) -> Samples:
        return self._samples(self.read(self.test.x[some]), self.test, some)

    def _samples(self, x: Tensor, data: Data, index: Tensor | slice) -> Samples:
        y = data.y[index]
        lengths = None if data.lengths is None else data.lengths[index]
        return Samples(x, y, torch.full((len(y),), self.task), lengths)


@dataclass(frozen=True, eq=False)
class Stream(Sequence[Experience]):
    """Tasks in the order in which they are learnt.

    Args:
        name: in words.
        experiences: the tasks; each knows its place.
        identity: whether a learner is told, also in the test, which task a sample belongs to.

    Example:
        >>> data = Data(torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2]))
        >>> stream = Stream("twins", [Experience(str(i), i, data, data, (0, 1, 2)) for i in (0, 1)])
        >>> len(stream), stream.outputs, stream[1].name
        (2, 3, '1')
    """

    name: str
    experiences: Sequence[Experience]
    identity: bool = False

    def __post_init__(self) -> None:
        if not self.experiences:
            raise InputError(
                f"expected at least one task in the stream {self.name!r}, but got none. "
                "Try tasks=2 or more."
            )
        first = self.experiences[0].samples(torch.tensor([0])).features
        for place, one in enumerate(self.experiences):
            if one.task != place:
                raise InputError(
                    f"expected the task {one.name!r} to know its place {place} in the stream, but "
                    f"got {one.task}. Number tasks from 0 in their order."
                )
            halves = {"": one.samples(torch.tensor([0])), "the test half of ": one.some_test(1)}
            for half, some in halves.items():
                if some.features != first:
                    raise InputError(
                        f"expected all tasks of a stream to have inputs of one size, {first} as in "
                        f"{self.experiences[0].name!r}, but {half}{one.name!r} has "
                        f"{some.features}. Pad or project the inputs first."
                    )
        shapes = {one.train.x.shape[1:] for one in self}
        if len(shapes) > 1 and any(one.train.lengths is None for one in self):
            raise InputError(
                f"expected lengths for sequences that differ from task to task, but the stream "
                f"{self.name!r} has {len(shapes)} lengths and not all of its data say them. "
                "Set Data.lengths."
            )

    @overload
    def __getitem__(self, place: int) -> Experience: ...
    @overload
    def __getitem__(self, place: slice) -> "Stream": ...
    def __getitem__(self, place: int | slice) -> "Experience | Stream":
        if isinstance(place, slice):
            chosen = self.experiences[place]
            return replace(self, experiences=[replace(one, task=i) for i, one in enumerate(chosen)])
        return self.experiences[place]

    def __len__(self) -> int:
        return len(self.experiences)

    @property
    def outputs(self) -> int:
        """How many answers a single head needs."""
        return 1 + max(label for one in self for label in one.classes)

    def fingerprint(self) -> str:
        """A short text that another stream does not have: of its tasks and their first samples."""
        digest = hashlib.sha256(f"{self.name} {self.identity}".encode())
        for one in self:
            sizes = (len(one.train.y), len(one.test.y))
            digest.update(f"{one.name} {one.classes} {sizes}".encode())
            first = one.samples(torch.arange(min(8, sizes[0])))
            digest.update(first.x.contiguous().cpu().numpy().tobytes())
            digest.update(one.train.y.cpu().numpy().tobytes())
        return digest.hexdigest()[:16]
