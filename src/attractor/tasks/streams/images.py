"""Streams of the image data sets: permuted, rotated, split by class, one data set after another."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import torch
from torch import Generator, Tensor

from attractor.checks import one_of
from attractor.tasks.arrays import ArrayTask, Data
from attractor.tasks.images.digits import digits_splits
from attractor.tasks.images.files import load_images, standard_splits
from attractor.tasks.images.task import Splits, split_off
from attractor.tasks.streams.classes import in_groups, split_classes
from attractor.tasks.streams.stream import Stream, cites
from attractor.tasks.streams.views import permuted, rotated


class Scale(NamedTuple):
    """The white of a data set's pixels; their mean and standard deviation when white is 1."""

    white: int
    mean: float
    deviation: float


SCALES = {
    "digits": Scale(16, 0.3053, 0.3760),
    "fashion_mnist": Scale(255, 0.2860, 0.3530),
    "kmnist": Scale(255, 0.1918, 0.3483),
    "kmnist_test": Scale(255, 0.1918, 0.3483),
    "mnist": Scale(255, 0.1307, 0.3081),
}
"""The data sets of which streams are made; ``kmnist_test`` splits KMNIST's test images alone."""

Held = Literal["test", "valid"]
"""What a learner is tested on: the test images, or part of the training set to choose settings."""


@cites("kirkpatrick2017overcoming")
def permuted_images(
    *,
    dataset: str = "mnist",
    tasks: int = 10,
    identity_first: bool = True,
    held: Held = "test",
    root: str | Path | None = None,
    generator: Generator,
) -> Stream:
    """Permuted MNIST, or any other image data set: each task has an order of the pixels of its own.

    Args:
        dataset: a key of `SCALES`.
        tasks: how many.
        identity_first: leave the first task as it is.
        held: ``"test"``, or ``"valid"`` to keep the test images for later.
        root: the data root; ``None`` means ``ATTRACTOR_DATA``, else the user's cache folder.
        generator: draws the permutations.

    Shape:
        x ``(samples, pixels)``, normalised; y ``(samples,)``.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> stream = permuted_images(dataset="digits", tasks=3, generator=g)
        >>> stream[2].first("test", 250).x.shape
        torch.Size([250, 64])

    References:
        Kirkpatrick et al. (2017), Overcoming catastrophic forgetting, section 2.1; Kuo (2021),
        thesis, section 6.1.5.
    """
    train, test = load(dataset, held, root)
    return permuted(
        _flat(train),
        _flat(test),
        tasks=tasks,
        identity_first=identity_first,
        name=f"permuted {dataset}",
        generator=generator,
    )


@cites("lopezpaz2017gradient")
def rotated_images(
    *,
    dataset: str = "mnist",
    degrees: Sequence[float] = (0, 20, 40, 60, 80, 100, 120, 140, 160, 180),
    held: Held = "test",
    root: str | Path | None = None,
) -> Stream:
    """Rotated MNIST, or any other image data set: each task has an angle of its own.

    Args:
        dataset: a key of `SCALES`.
        degrees: the angles.
        held: as for `permuted_images`.
        root: as for `permuted_images`.

    Shape:
        x ``(samples, pixels)``, normalised; y ``(samples,)``.

    Example:
        >>> rotated_images(dataset="digits", degrees=(0, 45))[1].name
        '45 degrees'

    References:
        Lopez-Paz and Ranzato (2017), Gradient episodic memory, section 5.1.
    """
    train, test = load(dataset, held, root)
    scale = SCALES[dataset]
    black = -scale.mean / scale.deviation
    return rotated(train, test, degrees, fill=black, name=f"rotated {dataset}")


@cites("zenke2017continual")
def split_images(
    *,
    dataset: str = "mnist",
    size: int = 2,
    relabel: bool = False,
    held: Held = "test",
    root: str | Path | None = None,
) -> Stream:
    """Split MNIST, or any other image data set: each task brings some new classes.

    Args:
        dataset: a key of `SCALES`.
        size: classes of a task.
        relabel: as for `split_classes`.
        held: as for `permuted_images`.
        root: as for `permuted_images`.

    Shape:
        x ``(samples, pixels)``, normalised; y ``(samples,)``.

    Example:
        >>> [task.classes for task in split_images(dataset="digits", size=5)]
        [(0, 1, 2, 3, 4), (5, 6, 7, 8, 9)]

    References:
        Zenke et al. (2017), Continual learning through synaptic intelligence, section 5.1.
    """
    train, test = load(dataset, held, root)
    groups = in_groups(range(10), size)
    return split_classes(
        _flat(train), _flat(test), groups, relabel=relabel, name=f"split {dataset}"
    )


@cites("kuo2021dynamic")
def image_sets(
    *,
    datasets: Sequence[str] = ("mnist", "kmnist"),
    held: Held = "test",
    root: str | Path | None = None,
) -> Stream:
    """One data set after the other, with the same ten outputs.

    Args:
        datasets: keys of `SCALES`.
        held: as for `permuted_images`.
        root: as for `permuted_images`.

    Shape:
        x ``(samples, pixels)``, normalised; y ``(samples,)``.

    Example:
        >>> len(image_sets(datasets=["digits"]))
        1

    References:
        Kuo (2021), thesis, section 6.2.4 (MNIST, then KMNIST).
    """
    tasks = []
    for place, dataset in enumerate(datasets):
        train, test = load(dataset, held, root)
        tasks.append(ArrayTask(dataset, place, _flat(train), _flat(test), tuple(range(10))))
    return Stream(", ".join(datasets), tasks)


@cites("le2015simple")
def permuted_sequences(
    *,
    dataset: str = "digits",
    tasks: int = 5,
    identity_first: bool = True,
    held: Held = "test",
    root: str | Path | None = None,
    generator: Generator,
) -> Stream:
    """Images read pixel by pixel, each task in an order of its own: for recurrent networks.

    Args:
        dataset: a key of `SCALES`.
        tasks: how many.
        identity_first: leave the first task as it is.
        held: as for `permuted_images`.
        root: as for `permuted_images`.
        generator: draws the permutations.

    Shape:
        x ``(samples, pixels, 1)``, for a model with ``batch_first=True``; y ``(samples,)``.

    Example:
        >>> stream = permuted_sequences(generator=torch.Generator().manual_seed(0))
        >>> stream[4].first("test", 250).inputs.shape
        torch.Size([250, 64, 1])

    References:
        Le et al. (2015), A simple way to initialize recurrent networks of rectified linear
        units, arXiv:1504.00941, section 4.2 (one permutation).
    """
    train, test = (_flat(data) for data in load(dataset, held, root))
    return permuted(
        train._replace(x=train.x[:, :, None]),
        test._replace(x=test.x[:, :, None]),
        tasks=tasks,
        identity_first=identity_first,
        name=f"permuted sequential {dataset}",
        generator=generator,
    )


def load(dataset: str, held: Held, root: str | Path | None) -> tuple[Data, Data]:
    """The training samples of a data set and those held out, normalised.

    Shape:
        x ``(samples, height, width)``, y ``(samples,)``.
    """
    one_of("dataset", dataset, SCALES)
    one_of("held", held, get_args(Held))
    train, valid, test = _splits(dataset, root)
    if held == "test":
        x, y = torch.cat([train.x, valid.x]), torch.cat([train.y, valid.y])
        rest = test
    else:
        (x, y), rest = train, valid
    scale = SCALES[dataset]
    return Data(_normalised(x, scale), y), Data(_normalised(rest.x, scale), rest.y)


def _splits(dataset: str, root: str | Path | None) -> Splits:
    if dataset == "digits":
        return digits_splits()
    if dataset == "kmnist_test":
        return split_off(load_images("kmnist", "test", root), 1000, 1000)
    return standard_splits(dataset, root)


def _normalised(x: Tensor, scale: Scale) -> Tensor:
    return x.float().div_(scale.white).sub_(scale.mean).div_(scale.deviation)


def _flat(data: Data) -> Data:
    return data._replace(x=data.x.flatten(1))
