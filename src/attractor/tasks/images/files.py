"""MNIST and its relatives as tensors, from their files."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attractor.checks import whole
from attractor.errors import InputError
from attractor.tasks.data import load_array
from attractor.tasks.images.task import CLASSES, Images, ImageTask, Order, Splits, split_off

VALIDATION_SIZE = 10_000

Half = Literal["train", "test"]


def load_images(name: str, half: Half, root: str | Path | None) -> Images:
    """The images and classes of one half of a data set, in the order of the files.

    Shape:
        x ``(images, 28, 28)`` from 0 to 255, y ``(images,)``.
    """
    x = torch.from_numpy(load_array(name, f"{half} images", root))
    y = load_array(name, f"{half} labels", root)
    return Images(x, classes(y, CLASSES, name, half))


def classes(labels: NDArray[np.uint8], number: int, name: str, half: str) -> Tensor:
    """The labels, once they are known to be below the number of classes."""
    if labels.max() >= number:
        raise InputError(
            f"expected {half} labels of {name} below {number}, but got {labels.max()}. "
            f"Delete that file and run `attractor data fetch {name}`."
        )
    return torch.from_numpy(labels).long()


def standard_splits(
    name: str, root: str | Path | None, validation: int = VALIDATION_SIZE
) -> Splits:
    """The 10,000 test images, the last training images for validation, and the rest."""
    seen = load_images(name, "train", root)
    if whole("validation", validation, 0) >= len(seen.y):
        raise InputError(
            f"expected fewer than the {len(seen.y)} training images of {name} for validation, but "
            f"got {validation}. Try validation={VALIDATION_SIZE}."
        )
    train, valid, _ = split_off(seen, validation, 0)
    return Splits(train, valid, load_images(name, "test", root))


class PublishedImages(ImageTask):
    """An image task on a data set of the catalogue in its standard splits."""

    dataset: ClassVar[str]
    """Its name in the catalogue."""

    def __init__(
        self,
        *,
        order: Order = "rows",
        permutation_seed: int = 0,
        trailing: bool = False,
        normalise: bool | Sequence[float] = False,
        side: int | None = None,
        validation: int = VALIDATION_SIZE,
        root: str | Path | None = None,
    ) -> None:
        super().__init__(
            standard_splits(self.dataset, root, validation),
            order=order,
            permutation_seed=permutation_seed,
            trailing=trailing,
            normalise=normalise,
            side=side,
            white=255,
        )
