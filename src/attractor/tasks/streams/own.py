"""Streams from what users have: arrays, files mapped into memory, data sets and loaders."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor
from torch.utils.data import DataLoader, default_collate

from attractor.errors import InputError
from attractor.tasks.arrays import ArrayTask, Data, as_tensor, classes_of, unchanged
from attractor.tasks.datasets import DatasetTask
from attractor.tasks.stored import StoredTask
from attractor.tasks.streams.stream import Stream


def task_of(
    train: Any,
    test: Any,
    *,
    name: str = "data",
    place: int = 0,
    classes: Iterable[int] | None = None,
    transform: Callable[[Tensor], Tensor] | None = None,
    augment: Callable[[Tensor, Generator], Tensor] | None = None,
) -> StoredTask:
    """A task of a stream, from data of any kind.

    Args:
        train: the training samples: a pair of arrays ``(x, y)``, of which ``x`` may be mapped from
            a file that is larger than memory; a map-style ``Dataset``; or a ``DataLoader``, whose
            data set and ``collate_fn`` are taken, and whose order and batch size are the learner's.
        test: the test samples, likewise.
        name: in words.
        place: in a stream, from 0; `Learner.learn` knows it better.
        classes: the answers that occur; found in arrays, needed for data sets.
        transform: of arrays, from stored rows to what the model reads; memories keep the stored
            ones, bytes as bytes.
        augment: of arrays, changes what is read at random, anew each time it is read or replayed;
            test samples never.

    Example:
        >>> import numpy as np
        >>> images = np.random.default_rng(0).integers(0, 256, (20, 16), dtype=np.uint8)
        >>> answers = np.arange(20) % 4
        >>> task = task_of((images, answers), (images, answers), transform=lambda x: x / 255)
        >>> task.classes, task.samples(torch.arange(3)).raw.dtype
        ((0, 1, 2, 3), torch.uint8)

    Departs from the paper: no paper.
    """
    if isinstance(train, tuple | list):
        return _of_arrays(train, test, name, place, classes, transform, augment)
    if transform is not None or augment is not None:
        raise InputError(
            f"expected a {type(train).__name__} that transforms its samples itself, but got a "
            "transform or an augment beside it. Give it to the data set."
        )
    if classes is None:
        raise InputError(
            f"expected the classes that occur in {name!r}, which a {type(train).__name__} does not "
            "tell without being read, but got none. Try classes=range(10)."
        )
    collate = train.collate_fn if isinstance(train, DataLoader) else default_collate
    halves = [one.dataset if isinstance(one, DataLoader) else one for one in (train, test)]
    for half in halves:
        if not hasattr(half, "__getitem__") or not hasattr(half, "__len__"):
            raise InputError(
                f"expected data with a length whose samples have numbers, but got a "
                f"{type(half).__name__}. A stream draws samples in its own order: try a map-style "
                "Dataset, or collect the samples in arrays."
            )
    return DatasetTask(
        halves[0], test=halves[1], name=name, place=place, classes=tuple(classes), collate=collate
    )


def _of_arrays(
    train: Sequence[Any],
    test: Sequence[Any],
    name: str,
    place: int,
    classes: Iterable[int] | None,
    transform: Callable[[Tensor], Tensor] | None,
    augment: Callable[[Tensor, Generator], Tensor] | None,
) -> ArrayTask:
    if not isinstance(test, tuple | list):
        raise InputError(
            f"expected test samples as arrays, as those of training are, but got a "
            f"{type(test).__name__}. Try (x, y) for both."
        )
    mapped = isinstance(test[0], np.memmap)
    first, second = (Data(*map(as_tensor, half)) for half in (train, test))
    return ArrayTask(
        name,
        place,
        first,
        second,
        classes_of(torch.cat([first.y, second.y])) if classes is None else tuple(classes),
        read=transform or unchanged,
        noise=augment,
        keep=not mapped,
        raw=True if augment is not None else None,
    )


def stream_of(
    name: str, halves: Iterable[tuple[Any, Any]], *, identity: bool = False, **options: Any
) -> Stream:
    """A stream from training and test data of each task.

    Args:
        name: in words.
        halves: for each task its training and its test samples, as for `task_of`.
        identity: whether a learner is told which task a sample belongs to.
        options: as for `task_of`, the same for all tasks.

    Example:
        >>> x, y = torch.randn(12, 3), torch.arange(12) % 2
        >>> stream = stream_of("halves", [((x, y), (x, y)), ((x, y + 2), (x, y + 2))])
        >>> [task.classes for task in stream], stream.outputs
        ([(0, 1), (2, 3)], 4)
    """
    tasks = [
        task_of(train, test, name=f"{name} {place + 1}", place=place, **options)
        for place, (train, test) in enumerate(halves)
    ]
    return Stream(name, tasks, identity)
