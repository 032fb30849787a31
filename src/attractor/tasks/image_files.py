"""MNIST and its relatives as tensors, from their files."""

from pathlib import Path
from typing import ClassVar, Literal

import torch

from attractor.errors import InputError
from attractor.tasks.data import load_array
from attractor.tasks.images import CLASSES, Images, ImageTask, Order, Splits, split_off

VALIDATION_SIZE = 10_000


def load_images(name: str, half: Literal["train", "test"], root: str | Path | None) -> Images:
    """The images and classes of one half of a data set, in the order of the files.

    Shape:
        x ``(images, 28, 28)`` from 0 to 255, y ``(images,)``.
    """
    x = torch.from_numpy(load_array(name, f"{half} images", root))
    y = torch.from_numpy(load_array(name, f"{half} labels", root)).long()
    if y.max() >= CLASSES:
        raise InputError(
            f"expected {half} labels of {name} below {CLASSES}, but got {int(y.max())}. "
            f"Delete that file and run `attractor data fetch {name}`."
        )
    return Images(x, y)


def standard_splits(name: str, root: str | Path | None) -> Splits:
    """The 10,000 test images, the last 10,000 training images for validation, and the rest."""
    train, valid, _ = split_off(load_images(name, "train", root), VALIDATION_SIZE, 0)
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
        normalise: bool = False,
        root: str | Path | None = None,
    ) -> None:
        super().__init__(
            standard_splits(self.dataset, root),
            order=order,
            permutation_seed=permutation_seed,
            trailing=trailing,
            normalise=normalise,
            white=255,
        )
