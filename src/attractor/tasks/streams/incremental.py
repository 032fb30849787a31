"""Colour photographs, of which each task brings new classes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from attractor.checks import one_of, whole
from attractor.tasks.arrays import Data
from attractor.tasks.images.cifar_files import load_cifar10, load_cifar100
from attractor.tasks.images.cub200 import load_cub200
from attractor.tasks.images.task import Images
from attractor.tasks.streams.classes import ICARL_ORDER, in_groups, split_classes
from attractor.tasks.streams.stream import Stream, cites


@dataclass(frozen=True)
class Normalised:
    """Bytes as numbers with mean 0 and deviation 1 in each channel, roughly."""

    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def __call__(self, x: Tensor) -> Tensor:
        mean, deviation = (
            torch.tensor(some, device=x.device)[:, None, None]
            for some in (self.mean, self.deviation)
        )
        return (x / 255 - mean) / deviation


@dataclass(frozen=True)
class Shifted:
    """Move each image by up to so many pixels, zeros coming in, and mirror half of them at random.

    Shape:
        ``(batch, channels, height, width)``, before and after.

    Example:
        >>> x = torch.arange(4.0).reshape(1, 1, 1, 4)
        >>> sorted(Shifted(0)(x, torch.Generator().manual_seed(1)).flatten().tolist())
        [0.0, 1.0, 2.0, 3.0]

    References:
        He et al. (2016), Deep residual learning for image recognition, section 4.2.
    """

    pixels: int = 4

    def __call__(self, x: Tensor, generator: Generator) -> Tensor:
        images, channels, height, width = x.shape
        down, right = torch.randint(2 * self.pixels + 1, (2, images, 1), generator=generator)
        mirrored = torch.rand(images, 1, generator=generator) < 0.5
        columns = torch.where(mirrored, torch.arange(width).flip(0), torch.arange(width))
        image, channel = torch.arange(images)[:, None, None, None], torch.arange(channels)
        rows = (torch.arange(height) + down)[:, None, :, None]
        return F.pad(x, [self.pixels] * 4)[
            image, channel[:, None, None], rows, (columns + right)[:, None, None, :]
        ]


class Setting(NamedTuple):
    """How a data set is cut: the order of its classes, those that come first, those of a task."""

    load: Callable[..., Images]
    order: Sequence[int]
    first: int
    size: int
    scale: Normalised


SETTINGS = {
    "cifar10": Setting(
        load_cifar10,
        range(10),
        4,
        2,
        Normalised((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    ),
    "cifar100": Setting(
        load_cifar100,
        ICARL_ORDER,
        50,
        5,
        Normalised((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
    ),
    "cub200": Setting(
        load_cub200, range(200), 100, 10, Normalised((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    ),
}
"""The thesis's two, and CIFAR-10 where CIFAR-100 cannot be had."""

Part = Literal["first", "rest"]


@cites("kuo2021dynamic")
def incremental_images(
    *,
    dataset: str = "cifar100",
    part: Part = "rest",
    first: int | None = None,
    size: int | None = None,
    relabel: bool = True,
    batches: int = 5,
    root: str | Path | None = None,
) -> Stream:
    """Incremental CIFAR-100, CUB200 or CIFAR-10: the first classes to pretrain on, then new ones.

    Args:
        dataset: ``"cifar100"`` (50 classes, then 10 tasks of 5, in iCaRL's order), ``"cub200"``
            (100, then 10 of 10) or ``"cifar10"`` (4, then 3 of 2).
        part: ``"rest"`` are the tasks; ``"first"`` is one task of the classes that come before
            them, for pretraining a feature extractor (see `with_features`).
        first: another number of first classes.
        size: another number of classes of a task.
        relabel: answer with the place of a class in its task.
        batches: of CIFAR-10, how many of the five training files to use.
        root: the data root; ``None`` means ``ATTRACTOR_DATA``, else the user's cache folder.

    Shape:
        x ``(samples, 3, height, width)``, normalised when read; y ``(samples,)``.

    Example:
        >>> stream = incremental_images(dataset="cifar10", batches=2)  # doctest: +SKIP
        >>> [task.name for task in stream]  # doctest: +SKIP
        ['classes 4, 5', 'classes 6, 7', 'classes 8, 9']

    Departs from the paper: the thesis does not say what its networks answer with; the accuracies of
    its naive learners, above 70%, exclude an output for each class of the stream, so tasks share
    their outputs here. ``relabel=False`` has an output for each class.

    References:
        Kuo (2021), thesis, sections 6.1.5 and 6.2.5; Rebuffi et al. (2017), iCaRL (the order).
    """
    groups = class_groups(dataset, part, first, size)
    setting = SETTINGS[dataset]
    options = {"batches": batches} if dataset == "cifar10" else {}
    train = Data(*setting.load("train", root, **options))
    test = Data(*setting.load("test", root))
    name = f"incremental {dataset}" if part == "rest" else f"first classes of {dataset}"
    stream = split_classes(train, test, groups, relabel=relabel, name=name)
    return replace(stream, tasks=[replace(one, read=setting.scale) for one in stream.arrays()])


def class_groups(
    dataset: str, part: Part, first: int | None, size: int | None
) -> list[tuple[int, ...]]:
    """The classes of each task of `incremental_images`.

    Example:
        >>> class_groups("cifar10", "rest", None, None)
        [(4, 5), (6, 7), (8, 9)]
    """
    one_of("dataset", dataset, SETTINGS)
    one_of("part", part, get_args(Part))
    setting = SETTINGS[dataset]
    count = whole("first", setting.first if first is None else first, 0)
    if part == "first":
        return [tuple(setting.order[:count])]
    return in_groups(setting.order[count:], setting.size if size is None else size)
