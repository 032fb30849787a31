"""A task over tensors in memory; arrays of NumPy, and those on disk, count as tensors."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import torch
from torch import Generator, Tensor

from attractor.checks import one_of, whole
from attractor.errors import InputError
from attractor.tasks.base import Split
from attractor.tasks.batch import IGNORE, Batch
from attractor.tasks.stored import StoredTask


class Data(NamedTuple):
    """Samples as they are stored.

    Shape:
        x ``(samples, ...)``; y ``(samples,)``, or ``(samples, time)`` for an answer at each step;
        lengths ``(samples,)`` where sequences are padded at the end to a common length.
    """

    x: Tensor
    y: Tensor
    lengths: Tensor | None = None


def unchanged(x: Tensor) -> Tensor:
    """The rows as they are stored."""
    return x


@dataclass(frozen=True, eq=False)
class ArrayTask(StoredTask):
    """Name the class of each sample, or of each step: data in memory and how they are read.

    Args:
        name: in words, for tables and messages.
        place: its place in a stream, from 0; the identity that some learners are told.
        train: the training samples.
        test: the test samples.
        classes: the answers that occur, whole numbers from 0.
        read: turns stored rows into what the model is shown: a permutation, a rotation.
        noise: changes the training samples each time they are read, held-out samples never.
        keep: keep the test samples as they were read; else they are read piece by piece each time,
            which saves memory where `read` makes them much larger.
        valid: the validation samples, if there are some.
        raw: let memories keep samples as they are stored, to be read and made noisy anew each time
            that they are replayed; by default those that are stored as whole numbers, such as
            images of bytes.

    Example:
        >>> data = Data(torch.randn(6, 4), torch.tensor([0, 1, 0, 1, 0, 1]))
        >>> task = ArrayTask("flipped", 0, data, data, (0, 1), read=lambda x: x.flip(1))
        >>> torch.equal(next(task.held_out("test", 6)).x, data.x.flip(1))
        True
    """

    name: str
    place: int
    train: Data
    test: Data
    classes: tuple[int, ...]
    read: Callable[[Tensor], Tensor] = unchanged
    noise: Callable[[Tensor, Generator], Tensor] | None = None
    keep: bool = True
    valid: Data | None = None
    raw: bool | None = None

    def __post_init__(self) -> None:
        if min(self.classes, default=0) < 0:
            raise InputError(
                f"expected classes from 0 on for the task {self.name!r}, each the place of an "
                f"output, but got {min(self.classes)}. Renumber them; {IGNORE} among the answers "
                "marks those that do not count."
            )
        for half, words in (("train", "training"), ("test", "test"), ("valid", "validation")):
            if (data := getattr(self, half)) is not None:
                object.__setattr__(self, half, self._checked(data, words))

    def _checked(self, data: Data, half: str) -> Data:
        """The data with answers as losses read them, once they are known to be whole."""
        if len(data.x) != len(data.y) or len(data.y) == 0:
            raise InputError(
                f"expected {half} samples for the task {self.name!r}, an answer for each, but "
                f"got {len(data.x)} inputs and {len(data.y)} answers. "
                "Leave empty tasks out of the stream."
            )
        y = data.y.long()
        if not torch.equal(y.to(data.y.dtype), data.y):
            raise InputError(
                f"expected the number of a class as each answer of the task {self.name!r}, but got "
                f"{data.y.dtype} that are not whole. Number the classes from 0."
            )
        answers = set(torch.unique(y).tolist()) - {IGNORE}
        if not answers <= set(self.classes):
            raise InputError(
                f"expected {half} answers of the task {self.name!r} among its classes, but got "
                f"{sorted(answers - set(self.classes))[:5]}. Name all classes that occur."
            )
        return data._replace(y=y)

    @cached_property
    def input_size(self) -> int:  # type: ignore[override]
        return self.features[0]

    @property
    def features(self) -> tuple[int, ...]:
        return self._first.features

    @property
    def output_size(self) -> int:  # type: ignore[override]
        return 1 + max(self.classes)

    @property
    def answers(self) -> Literal["once", "each step"]:  # type: ignore[override]
        return "once" if self.train.y.ndim == 1 else "each step"

    @cached_property
    def timed(self) -> bool:  # type: ignore[override]
        return bool(self._first.x.ndim == 3)

    @cached_property
    def _first(self) -> Batch:
        return self.samples(torch.tensor([0]))

    def __len__(self) -> int:
        """How many training samples there are."""
        return len(self.train.y)

    @cached_property
    def keeps_raw(self) -> bool:  # type: ignore[override]
        if self.raw is not None:
            return self.raw
        return self.read is not unchanged and not self.train.x.is_floating_point()

    def samples(self, index: Tensor, generator: Generator | None = None) -> Batch:
        stored = self.train.x.index_select(0, index)
        batch = self._batch(self.see(stored, generator), self.train, index)
        if self.keeps_raw:
            batch.raw = stored
        return batch

    def see(self, stored: Tensor, generator: Generator | None = None) -> Tensor:
        x = self.read(stored)
        return x if self.noise is None or generator is None else self.noise(x, generator)

    def held_out(self, split: Split, size: int) -> Iterator[Batch]:
        """The batches of a split, in the order of the data; the last may be smaller."""
        one_of("split", split, ("valid", "test"))
        whole("size", size, 1)
        data = self.valid if split == "valid" else self.test
        if data is None:
            raise InputError(
                f"expected validation samples for the task {self.name!r}, but it has none. "
                "Give it some (valid=...), or measure on the test split only at the end."
            )
        kept = self.test_samples if split == "test" and self.keep else None
        for start in range(0, len(data.y), size):
            some = slice(start, start + size)
            yield self._read(data, some) if kept is None else kept[some]

    @cached_property
    def test_samples(self) -> Batch:
        """All test samples; they are read once and kept."""
        return self._read(self.test, slice(None))

    def first(self, split: Split, count: int) -> Batch:
        data = self.valid if split == "valid" else self.test
        assert data is not None
        return self._read(data, slice(count))

    def at(self, place: int) -> "ArrayTask":
        return replace(self, place=place)

    def feed(self, digest: Any) -> None:
        sizes = (len(self.train.y), len(self.test.y))
        digest.update(f"{self.name} {self.classes} {sizes}".encode())
        first = self.samples(torch.arange(min(8, sizes[0])))
        digest.update(first.x.contiguous().cpu().numpy().tobytes())
        digest.update(self.train.y.cpu().numpy().tobytes())

    def _read(self, data: Data, some: slice) -> Batch:
        return self._batch(self.read(data.x[some]), data, some)

    def _batch(self, x: Tensor, data: Data, index: Tensor | slice) -> Batch:
        y = data.y[index]
        lengths = None if data.lengths is None else data.lengths[index]
        return Batch(x, y, lengths, torch.full((len(y),), self.place))


def classes_of(y: Tensor) -> tuple[int, ...]:
    """The classes that occur among answers, in order.

    Example:
        >>> classes_of(torch.tensor([2, 0, 0, IGNORE]))
        (0, 2)
    """
    return tuple(c for c in torch.unique(y.long()).tolist() if c != IGNORE)


def as_tensor(values: Any) -> Tensor:
    """Anything like an array as a tensor, of the same memory where that can be."""
    if isinstance(values, Tensor):
        return values
    with warnings.catch_warnings():
        # arrays that may only be read, such as files mapped into memory, are only read here
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.as_tensor(values)
