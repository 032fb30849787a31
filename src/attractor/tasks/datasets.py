"""Tasks over what users have: a `Dataset` of torch, with numbers or without, or a `DataLoader`."""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, Self

import torch
from torch import Generator, Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, default_collate

from attractor.checks import one_of, whole
from attractor.errors import InputError, shortened
from attractor.tasks.arrays import as_tensor, unchanged
from attractor.tasks.base import Sampler, Split, Task
from attractor.tasks.batch import Batch
from attractor.tasks.samplers import BLOCK, expect_keys
from attractor.tasks.stored import StoredTask

Collate = Callable[[list[Any]], Any]
"""From a list of samples to one batch of them."""

LARGE = 2**16
"""Bytes from which on samples are not read ahead: many batches of them might not fit."""


def batch_of(found: Any) -> Batch:
    """What a data set gives, ``(x, y)`` or ``(x, y, lengths)``, as a batch."""
    if isinstance(found, Batch):
        return found
    if not isinstance(found, Sequence) or len(found) not in (2, 3):
        raise InputError(
            "expected samples of (x, y), or of (x, y, length), but the data set gives "
            f"{type(found).__name__}. Try a collate function that returns a Batch."
        )
    x, y, *lengths = found
    return Batch(tuple(x) if isinstance(x, list) else x, numbers(y, "answers"), *lengths)


def numbers(values: Any, what: str) -> Tensor:
    """Anything like an array as a tensor, once it is known to hold numbers.

    Example:
        >>> numbers([[1.0, 2.0]], "inputs")
        tensor([[1., 2.]])
    """
    try:
        return as_tensor(values)
    except (RuntimeError, TypeError, ValueError) as error:
        got = " ".join(shortened(values, 60).split())
        raise InputError(
            f"expected {what} as numbers, but got {got}. Number classes from 0, and pad sequences "
            "to one length."
        ) from error


class DatasetTask(StoredTask):
    """A task over map-style data sets, which may be larger than memory.

    Args:
        train: the training samples, ``(x, y)`` each.
        test: the test samples; by default there are none.
        valid: the validation samples; by default there are none.
        name: in words.
        place: in a stream, from 0.
        classes: the answers that occur, which a stream needs to know.
        collate: from a list of samples to a batch; by default torch's.
        read: turns the inputs of a batch, as the data sets give them, into what the model is shown.
        noise: changes training inputs at random each time they are read, held-out ones never. With
            it, or where `read` turns whole numbers into others, memories keep the inputs as the
            data set gives them, and read and change them anew each time they are replayed.

    Example:
        >>> data = TensorDataset(torch.randn(6, 4), torch.tensor([0, 1, 0, 1, 0, 1]))
        >>> task = DatasetTask(data, valid=data)
        >>> task.batches(2, generator=torch.Generator().manual_seed(0)).draw().x.shape
        torch.Size([2, 4])

    Departs from the paper: no paper.
    """

    def __init__(
        self,
        train: Dataset[Any],
        *,
        test: Dataset[Any] | None = None,
        valid: Dataset[Any] | None = None,
        name: str = "data",
        place: int = 0,
        classes: Sequence[int] = (),
        collate: Collate = default_collate,
        read: Callable[[Tensor], Tensor] = unchanged,
        noise: Callable[[Tensor, Generator], Tensor] | None = None,
    ) -> None:
        self.train, self.test, self.valid = train, test, valid
        self.read, self.noise = read, noise
        self.name, self.place, self.classes = name, place, tuple(classes)
        self.collate = collate
        halves = {"to train on": train, "to test on": test, "for validation": valid}
        for purpose, half in halves.items():
            if half is not None and not len(half):  # type: ignore[arg-type]
                raise InputError(
                    f"expected samples {purpose} in {name!r}, but there are none. Give some, or "
                    "leave an empty test or validation set out."
                )
        stored = self._placed(self._read(train, torch.tensor([0])))
        counted = isinstance(stored.x, Tensor) and not stored.x.is_floating_point()
        self.keeps_raw = noise is not None or (read is not unchanged and counted)
        self._first = first = self._shown(stored)
        small = isinstance(train, TensorDataset) and train.tensors[0][:1].nbytes < LARGE
        self.block = BLOCK if small else 1
        self._features = first.features
        self.input_size = first.features[0] if first.features else 1
        self.timed = not isinstance(first.x, tuple) and first.x.ndim == 3
        self.answers = "once" if first.y.ndim == 1 else "each step"
        self.output_size = 1 + max(self.classes) if self.classes else 1

    @property
    def features(self) -> tuple[int, ...]:
        return self._features

    def __len__(self) -> int:
        return len(self.train)

    def shown(self) -> Batch:
        return self._first

    def samples(self, index: Tensor, generator: Generator | None = None) -> Batch:
        return self._shown(self._placed(self._read(self.train, index)), generator)

    def _shown(self, batch: Batch, generator: Generator | None = None) -> Batch:
        stored, batch.x = batch.x, self.see(batch.x, generator)
        batch.raw = stored if self.keeps_raw else None
        return batch

    def see(self, stored: Tensor, generator: Generator | None = None) -> Tensor:
        x = self.read(stored)
        return x if self.noise is None or generator is None else self.noise(x, generator)

    def held_out(self, split: Split, size: int) -> Iterator[Batch]:
        data: Any = held(self, split)
        whole("size", size, 1)
        for start in range(0, len(data), size):
            some = torch.arange(start, min(start + size, len(data)))
            batch = self._placed(self._read(data, some))
            batch.x = self.read(batch.x)
            yield batch

    def first(self, split: Split, count: int) -> Batch:
        return next(self.held_out(split, count))

    def at(self, place: int) -> Self:
        moved = copy(self)
        moved.place = place
        return moved

    def feed(self, digest: Any) -> None:
        digest.update(f"{self.name} {self.classes} {len(self)}".encode())
        first = self.samples(torch.arange(min(8, len(self))))
        for tensor in (*first.x, first.y) if isinstance(first.x, tuple) else (first.x, first.y):
            digest.update(tensor.contiguous().cpu().numpy().tobytes())

    def _read(self, data: Any, index: Tensor) -> Batch:
        if isinstance(data, TensorDataset):
            return batch_of(data[index])
        numbers = index.tolist()
        many = getattr(data, "__getitems__", None)
        samples = many(numbers) if many else [data[n] for n in numbers]
        try:
            return batch_of(self.collate(samples))
        except (RuntimeError, TypeError) as error:
            raise InputError(
                f"expected samples that make one batch, but: {str(error).rstrip('.')}. Try a list "
                "of sequences, which are padded, or a DataLoader whose collate_fn pads them."
            ) from error

    def _placed(self, batch: Batch) -> Batch:
        batch.task = torch.full((len(batch),), self.place)
        return batch


class LoaderTask(Task):
    """A task over data without numbers: whatever a `DataLoader` goes through.

    The loader decides the size of batches and their order. A run that goes on after it was
    stopped goes through the epoch again up to where it was, so the loader must give the same
    batches for the same state of its generator, or of torch's default one if it has none.

    Args:
        train: gives training batches, ``(x, y)`` each, again and again.
        test: gives test batches.
        valid: gives validation batches.
        name: in words.

    Example:
        >>> data = TensorDataset(torch.randn(6, 4), torch.tensor([0, 1, 0, 1, 0, 1]))
        >>> task = LoaderTask(DataLoader(data, batch_size=3))
        >>> task.batches(3, generator=torch.Generator()).draw().y
        tensor([0, 1, 0])

    Departs from the paper: no paper.
    """

    def __init__(
        self,
        train: DataLoader[Any],
        *,
        test: DataLoader[Any] | None = None,
        valid: DataLoader[Any] | None = None,
        name: str = "data",
    ) -> None:
        self.train, self.test, self.valid, self.name = train, test, valid, name
        found = next(iter(train), None)
        if found is None:
            raise InputError(
                f"expected batches to train on in {name!r}, but the loader gives none. Give it "
                "data, and with drop_last=True at least as many as fill a batch."
            )
        self._first = first = batch_of(found)
        self._features = first.features
        self.input_size = first.features[0] if first.features else 1
        self.timed = not isinstance(first.x, tuple) and first.x.ndim == 3
        self.answers = "once" if first.y.ndim == 1 else "each step"

    @property
    def features(self) -> tuple[int, ...]:
        return self._features

    def batches(self, size: int, *, generator: Generator) -> Sampler:
        return Loaded(self.train)

    def shown(self) -> Batch:
        return self._first

    def held_out(self, split: Split, size: int) -> Iterator[Batch]:
        return map(batch_of, held(self, split))


class Loaded(Sampler):
    """The batches of a loader, epoch after epoch.

    Args:
        loader: what is gone through.

    Example:
        >>> data = TensorDataset(torch.arange(4.0), torch.zeros(4))
        >>> sampler = Loaded(DataLoader(data, batch_size=3))
        >>> [sampler.draw().x.tolist() for _ in range(3)]
        [[0.0, 1.0, 2.0], [3.0], [0.0, 1.0, 2.0]]

    Departs from the paper: no paper.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        self.loader = loader
        self._epoch: Iterator[Any] | None
        self._begin()

    def draw(self) -> Batch:
        found = None if self._epoch is None else next(self._epoch, None)
        if found is None:
            self._begin()
            self._epoch = iter(self.loader)
            found = next(self._epoch, None)
        if found is None:
            raise InputError(
                "expected a loader that can be gone through again and again, but it gives nothing "
                "any more. Let the __iter__ of its data set begin anew each time."
            )
        self._drawn += 1
        return batch_of(found)

    def _begin(self) -> None:
        """Stand before an epoch, which is begun when its first batch is asked for."""
        self._before = self._source.get_state()
        self._epoch, self._drawn = None, 0

    @property
    def _source(self) -> Generator:
        """What draws the order of an epoch."""
        return self.loader.generator or torch.default_generator

    def state_dict(self) -> dict[str, Tensor]:
        return {"drawn": torch.tensor(self._drawn), "generator": self._before}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        expect_keys(state, {"drawn", "generator"})
        self._source.set_state(state["generator"])
        self._begin()
        for _ in range(int(state["drawn"])):
            self.draw()


def held(task: Any, split: Split) -> Any:
    """The data of a split, once they are known to be there."""
    data = getattr(task, one_of("split", split, ("valid", "test")))
    if data is None:
        raise InputError(
            f"expected {split} data for {task.name!r}, but there are none. Give some as {split}=..."
        )
    return data


def over(
    data: Any, *, valid: Any = None, test: Any = None, name: str = "data", batch_size: int = 32
) -> Task:
    """A task over a data set or a loader, of whichever kind it is.

    Args:
        data: the training samples.
        valid: the validation samples; a data set beside a loader is gone through by one, too.
        test: the test samples, likewise.
        name: in words.
        batch_size: of data sets without numbers; a loader has its own, and other data are cut
            into batches by whoever asks for them.

    Example:
        >>> data = TensorDataset(torch.randn(6, 4), torch.zeros(6, dtype=torch.long))
        >>> type(over(data)).__name__, type(over(DataLoader(data))).__name__
        ('DatasetTask', 'LoaderTask')
    """
    if not isinstance(data, DataLoader | IterableDataset):
        for split, held_out in (("valid", valid), ("test", test)):
            if isinstance(held_out, DataLoader | IterableDataset):
                raise InputError(
                    f"expected {split} data with numbers, as those to train on have, but got a "
                    f"{type(held_out).__name__}. Try {split}=loader.dataset, or a loader for both."
                )
        return DatasetTask(data, valid=valid, test=test, name=name)

    def loader(one: Any) -> Any:
        return one if one is None or isinstance(one, DataLoader) else DataLoader(one, batch_size)

    return LoaderTask(loader(data), valid=loader(valid), test=loader(test), name=name)
