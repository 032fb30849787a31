"""STL-10: few labelled images of 96 x 96."""

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np
import torch

from attractor.checks import one_of
from attractor.errors import InputError
from attractor.tasks.data.arrays import read_bytes
from attractor.tasks.data.root import VARIABLE, data_root
from attractor.tasks.images.files import Half
from attractor.tasks.images.task import CLASSES, Images, ImageTask, Order, Splits, split_off

SIDE = 96
FOLDER = "stl10_binary"
LARGEST = 8000 * 3 * SIDE * SIDE
"""Bytes of the largest file that is read."""


def load_stl10(half: Half, root: str | Path | None = None) -> Images:
    """STL-10 in the order of its binary files; the unlabelled images are not read.

    Args:
        half: ``"train"`` (5,000 images) or ``"test"`` (8,000).
        root: the data root, with ``stl10_binary/train_X.bin``, ``train_y.bin`` and so on, plain or
            compressed; ``None`` means ``ATTRACTOR_DATA``, else the user's cache folder.

    Shape:
        x ``(images, 3, 96, 96)`` from 0 to 255, y ``(images,)`` from 0 to 9.

    References:
        Coates et al. (2011), An analysis of single-layer networks in unsupervised feature learning.
    """
    one_of("half", half, get_args(Half))
    pixels, labels = _bytes(f"{half}_X.bin", root), _bytes(f"{half}_y.bin", root)
    size = 3 * SIDE * SIDE
    if not len(labels) or len(pixels) != size * len(labels):
        raise InputError(
            f"expected {size:,} bytes for each of the {len(labels)} labels of STL-10's {half} "
            f"half, but got {len(pixels):,}. Get {FOLDER} again."
        )
    if labels.min() < 1 or labels.max() > CLASSES:
        raise InputError(
            f"expected labels of STL-10 from 1 to {CLASSES}, but got {labels.min()} to "
            f"{labels.max()}. Get {FOLDER} again."
        )
    # the file has columns before rows
    x = pixels.reshape(-1, 3, SIDE, SIDE).transpose(0, 1, 3, 2)
    y = torch.from_numpy(labels.astype(np.int64)) - 1
    return Images(torch.from_numpy(np.ascontiguousarray(x)), y)


def _bytes(name: str, root: str | Path | None) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    folder = data_root(root) / FOLDER
    for packed in ("", ".gz", ".xz"):
        path = folder / (name + packed)
        if path.exists():
            try:
                return np.frombuffer(read_bytes(path, LARGEST), np.uint8)
            except (OSError, EOFError, ValueError) as error:
                raise InputError(
                    f"expected bytes in {path}, but got: {error}. Get the file again."
                ) from error
    raise InputError(
        f"expected {name} in {folder}, plain or compressed, but there is none. Get it from "
        f"cs.stanford.edu/~acoates/stl10, or set {VARIABLE} to a folder that has it."
    )


class STL10(ImageTask):
    """STL-10: name what is in a photograph, from 4,500 labelled ones.

    The last tenth of the training images is for validation.

    Args:
        order: ``"rows"`` (96 steps of 288), ``"pixels"`` or ``"permuted"`` (9,216 steps of 3);
            ``"flat"`` (one vector) or ``"image"`` (three channels), at once.
        permutation_seed: draws the order of ``"permuted"``.
        trailing: end each sequence with a step of zeros, at which to answer.
        normalise: bring each channel to mean 0 and standard deviation 1 over the images that are
            not for test; or the mean that is subtracted and the deviation that divides.
        side: shrink images to so many rows and columns, each the mean of what it covers.
        root: the data root; ``None`` means ``ATTRACTOR_DATA``, else the user's cache folder.

    Shape:
        x ``(batch, 96, 288)``, ``(batch, 9216, 3)``, ``(batch, 27648)`` or ``(batch, 3, 96, 96)``;
        y ``(batch,)``.

    Example:
        >>> task = STL10(order="image", side=32)  # doctest: +SKIP

    Departs from the paper: the ten published folds of the training images are not used.

    References:
        Coates et al. (2011), An analysis of single-layer networks in unsupervised feature learning.
    """

    reference = "coates2011analysis"

    def __init__(
        self,
        *,
        order: Order = "rows",
        permutation_seed: int = 0,
        trailing: bool = False,
        normalise: bool | Sequence[float] = False,
        side: int | None = None,
        root: str | Path | None = None,
    ) -> None:
        seen = load_stl10("train", root)
        train, valid, _ = split_off(seen, len(seen.y) // 10, 0)
        super().__init__(
            Splits(train, valid, load_stl10("test", root)),
            order=order,
            permutation_seed=permutation_seed,
            trailing=trailing,
            normalise=normalise,
            side=side,
            white=255,
        )
