"""Streams from what users have: arrays, files mapped into memory, data sets and loaders."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Generator, Tensor
from torch.utils.data import DataLoader, default_collate

from attractor.checks import one_of
from attractor.errors import InputError
from attractor.tasks.arrays import ArrayTask, Data, as_tensor, classes_of, unchanged
from attractor.tasks.datasets import DatasetTask
from attractor.tasks.stored import StoredTask
from attractor.tasks.streams.stream import Stream
from attractor.tasks.values import LabelSetTask, LabelTask, NumberSetTask, NumberTask, vectors

Asks = Literal["classes", "numbers", "labels"]
"""What is to be said of a sample."""

ARRAYS: dict[Asks, type[ArrayTask]] = {
    "classes": ArrayTask,
    "numbers": NumberTask,
    "labels": LabelTask,
}
SETS: dict[Asks, type[DatasetTask]] = {
    "classes": DatasetTask,
    "numbers": NumberSetTask,
    "labels": LabelSetTask,
}


def task_of(
    train: Any,
    test: Any,
    *,
    name: str = "data",
    place: int = 0,
    classes: Iterable[int] | None = None,
    asks: Asks = "classes",
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
        asks: whether an answer is the number of a class; ``"numbers"``, one or several for each
            sample, with the mean squared error as the loss; or ``"labels"``, a 0 or 1 for each of
            them, with binary cross entropy. A learner can be given another loss.
        transform: from several samples as they are stored, or as a data set gives them, to what
            the model reads; memories keep the former, bytes as bytes.
        augment: changes what is read at random, anew each time it is read or replayed; test
            samples never. What a data set changes itself is kept as it was changed.

    Example:
        >>> import numpy as np
        >>> images = np.random.default_rng(0).integers(0, 256, (20, 16), dtype=np.uint8)
        >>> answers = np.arange(20) % 4
        >>> task = task_of((images, answers), (images, answers), transform=lambda x: x / 255)
        >>> task.classes, task.samples(torch.arange(3)).raw.dtype
        ((0, 1, 2, 3), torch.uint8)

    Departs from the paper: no paper.
    """
    one_of("asks", asks, get_args(Asks))
    if asks != "classes" and classes is not None:
        raise InputError(
            f"expected no classes where {asks} are asked for, but got some. Leave them out."
        )
    if isinstance(train, tuple | list):
        return _of_arrays(train, test, name, place, classes, asks, transform, augment)
    given: dict[str, Any] = {"name": name, "place": place}
    given |= {"read": transform or unchanged, "noise": augment}
    if asks == "classes":
        if classes is None:
            raise InputError(
                f"expected the classes that occur in {name!r}, which a {type(train).__name__} does "
                "not tell without being read, but got none. Try classes=range(10)."
            )
        given["classes"] = tuple(classes)
    collate = train.collate_fn if isinstance(train, DataLoader) else default_collate
    halves = [one.dataset if isinstance(one, DataLoader) else one for one in (train, test)]
    for half in halves:
        if not hasattr(half, "__getitem__") or not hasattr(half, "__len__"):
            raise InputError(
                f"expected data with a length whose samples have numbers, but got a "
                f"{type(half).__name__}. A stream draws samples in its own order: try a map-style "
                "Dataset, or collect the samples in arrays."
            )
    task = SETS[asks](halves[0], test=halves[1], collate=collate, **given)
    if asks == "classes":
        _expect_classes(task.shown().y, name)
    return task


def _expect_classes(y: Tensor, name: str) -> None:
    """Refuse answers that are no numbers of classes."""
    if y.is_floating_point() and not torch.equal(y, y.round()):
        raise InputError(
            f"expected the number of a class as each answer of the task {name!r}, but got {y.dtype}"
            " that are not whole. Number the classes from 0; for regression say asks='numbers'."
        )


def _of_arrays(
    train: Sequence[Any],
    test: Sequence[Any],
    name: str,
    place: int,
    classes: Iterable[int] | None,
    asks: Asks,
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
    if asks != "classes":
        first, second = (half._replace(y=vectors(half.y)) for half in (first, second))
        classes = range(first.y.shape[1])
    elif classes is None:
        _expect_classes(first.y, name)
        _expect_classes(second.y, name)
        classes = classes_of(torch.cat([first.y, second.y]))
    return ARRAYS[asks](
        name,
        place,
        first,
        second,
        tuple(classes),
        read=transform or unchanged,
        noise=augment,
        keep=not mapped,
        raw=True if augment is not None else None,
    )


def stream_of(
    name: str,
    halves: Iterable[tuple[Any, Any]],
    *,
    identity: bool = False,
    classes: Iterable[int] | Iterable[Iterable[int]] | None = None,
    **options: Any,
) -> Stream:
    """A stream from training and test data of each task.

    Args:
        name: in words.
        halves: for each task its training and its test samples, as for `task_of`.
        identity: whether a learner is told which task a sample belongs to.
        classes: as for `task_of`, the same for all tasks, or those of each task.
        options: as for `task_of`, the same for all tasks.

    Example:
        >>> x, y = torch.randn(12, 3), torch.arange(12) % 2
        >>> stream = stream_of("halves", [((x, y), (x, y)), ((x, y + 2), (x, y + 2))])
        >>> [task.classes for task in stream], stream.outputs
        ([(0, 1), (2, 3)], 4)
    """
    pairs = list(halves)
    tasks = [
        task_of(train, test, name=f"{name} {place + 1}", place=place, classes=own, **options)
        for place, ((train, test), own) in enumerate(
            zip(pairs, _of_each(classes, len(pairs)), strict=True)
        )
    ]
    return Stream(name, tasks, identity)


def _of_each(classes: Iterable[Any] | None, tasks: int) -> list[list[int] | None]:
    """The classes of each task, once they are known to be one list, or one for each."""
    if classes is None:
        return [None] * tasks
    found = list(classes)
    if not any(isinstance(one, Iterable) for one in found):
        return [found] * tasks
    if len(found) != tasks or not all(isinstance(one, Iterable) for one in found):
        raise InputError(
            f"expected the classes of each of the {tasks} tasks, or the same for all, but got "
            f"{len(found)}. Try classes=[range(2), range(2, 4)] for two tasks of two."
        )
    return [list(one) for one in found]
