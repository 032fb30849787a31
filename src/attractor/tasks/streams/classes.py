"""Streams by class: each task brings classes that were not there before."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from attractor.checks import whole
from attractor.errors import InputError
from attractor.tasks.arrays import ArrayTask, Data
from attractor.tasks.streams.stream import Stream

# fmt: off
ICARL_ORDER = (
    68, 56, 78, 8, 23, 84, 90, 65, 74, 76, 40, 89, 3, 92, 55, 9, 26, 80, 43, 38, 58, 70, 77, 1, 85,
    19, 17, 50, 28, 53, 13, 81, 45, 82, 6, 59, 83, 16, 15, 44, 91, 41, 72, 60, 79, 52, 20, 10, 31,
    54, 37, 95, 14, 71, 96, 98, 97, 2, 64, 66, 42, 22, 35, 86, 24, 34, 87, 21, 99, 0, 88, 27, 18,
    94, 11, 12, 47, 25, 30, 46, 62, 69, 36, 61, 7, 63, 75, 5, 32, 4, 51, 48, 73, 93, 39, 67, 29,
    49, 57, 33,
)
"""The order of the 100 classes of CIFAR-100 in Rebuffi et al. (2017), used by most since."""
# fmt: on


def split_classes(
    train: Data,
    test: Data,
    groups: Sequence[Sequence[int]],
    *,
    relabel: bool = False,
    name: str = "split",
) -> Stream:
    """A stream in which each task has the samples of some classes.

    Args:
        train: the training samples of all classes.
        test: the test samples of all classes.
        groups: the classes of each task.
        relabel: answer with the place of a class in its group, so that all tasks share a small
            head (domain-incremental); else with the class itself.
        name: of the stream.

    Shape:
        x ``(samples, ...)``, y ``(samples,)``.

    Example:
        >>> data = Data(torch.arange(4.0)[:, None], torch.tensor([0, 1, 2, 3]))
        >>> stream = split_classes(data, data, [(0, 3), (1, 2)], relabel=True)
        >>> stream[1].first("test", 9).x.squeeze(), stream[1].first("test", 9).y
        (tensor([1., 2.]), tensor([0, 1]))

    References:
        Zenke et al. (2017), Continual learning through synaptic intelligence, section 5.1 (split
        MNIST); van de Ven and Tolias (2018), Three scenarios for continual learning.
    """
    tasks = []
    for place, group in enumerate(groups):
        some_train, some_test = (_of_classes(data, group, relabel) for data in (train, test))
        classes = tuple(range(len(group)) if relabel else group)
        words = ", ".join(map(str, group))
        tasks.append(ArrayTask(f"classes {words}", place, some_train, some_test, classes))
    return Stream(name, tasks)


def in_groups(order: Sequence[int], size: int) -> list[tuple[int, ...]]:
    """Classes in groups of equal size, in the given order.

    Example:
        >>> in_groups([3, 0, 2, 1], 2)
        [(3, 0), (2, 1)]
    """
    whole("size", size, 1)
    if len(order) % size:
        raise InputError(
            f"expected groups of equal size, but {len(order)} classes do not go into groups of "
            f"{size}. Try a divisor of {len(order)}."
        )
    return [tuple(order[start : start + size]) for start in range(0, len(order), size)]


def _of_classes(data: Data, group: Sequence[int], relabel: bool) -> Data:
    among = torch.tensor(list(group))
    rows = torch.isin(data.y, among).nonzero().squeeze(1)
    y = data.y[rows]
    if relabel:
        y = (y[:, None] == among).int().argmax(1)
    lengths = None if data.lengths is None else data.lengths[rows]
    return Data(data.x[rows], y, lengths)


def own_heads(stream: Stream) -> Stream:
    """The stream with answers of its own for each task: task t's class c becomes an output of t's.

    For a network with one head per task, as a `MultiHead` reads it; the learner is told the task.

    Example:
        >>> data = Data(torch.zeros(2, 1), torch.tensor([0, 1]))
        >>> twins = Stream("twins", [ArrayTask(str(i), i, data, data, (0, 1)) for i in (0, 1)])
        >>> [task.classes for task in own_heads(twins)]
        [(0, 1), (2, 3)]
    """
    tasks, first = [], 0
    for one in stream.arrays():
        train, test = (data._replace(y=_moved(data.y, first)) for data in (one.train, one.test))
        classes = tuple(label + first for label in one.classes)
        tasks.append(replace(one, train=train, test=test, classes=classes))
        first = 1 + max(classes)
    return replace(stream, name=f"{stream.name}, own heads", tasks=tasks, identity=True)


def _moved(y: Tensor, by: int) -> Tensor:
    return torch.where(y < 0, y, y + by)


def with_features(
    stream: Stream, extractor: Callable[[Tensor], Tensor], *, batch_size: int = 500
) -> Stream:
    """The stream as a frozen network sees it: its features are computed once and kept.

    Args:
        stream: what the network reads, without noise, which would be drawn once and for all.
        extractor: the network, from inputs to features.
        batch_size: samples that it reads at once.

    Shape:
        x ``(samples, ...)`` becomes ``(samples, features)``.

    Example:
        >>> data = Data(torch.arange(6.0).reshape(2, 3), torch.tensor([0, 1]))
        >>> stream = Stream("one", [ArrayTask("a", 0, data, data, (0, 1))])
        >>> with_features(stream, lambda x: x.sum(1, keepdim=True)).arrays()[0].train.x
        tensor([[ 3.],
                [12.]])
    """
    tasks = stream.arrays()
    if any(one.noise is not None for one in tasks):
        raise InputError(
            f"expected a stream without noise, which cannot be new each time in features that are "
            f"kept, but got {stream.name!r}. Try inject_noise on the stream of features."
        )

    def features(task: ArrayTask, data: Data) -> Data:
        with torch.no_grad():
            parts = [extractor(task.read(x)) for x in torch.split(data.x, batch_size)]
        return data._replace(x=torch.cat(parts))

    seen = [
        ArrayTask(
            one.name, one.place, features(one, one.train), features(one, one.test), one.classes
        )
        for one in tasks
    ]
    return replace(stream, name=f"{stream.name}, features", tasks=seen)
