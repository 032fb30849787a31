"""The two CIFARs as tensors, from the files of their binary versions."""

from itertools import takewhile
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attractor.checks import flag, one_of, whole
from attractor.errors import InputError
from attractor.tasks.data import data_root, load_array, verify
from attractor.tasks.images.files import Half, classes
from attractor.tasks.images.task import CLASSES, Images

BATCHES = 5
"""Files of CIFAR-10's training images."""


def load_cifar10(half: Half, root: str | Path | None = None, *, batches: int = BATCHES) -> Images:
    """CIFAR-10 in the order of its files.

    The files are those of the binary version; the one in Python's pickles is not read, as nothing
    here is unpickled.

    Args:
        half: ``"train"`` or ``"test"``.
        root: the data root; ``None`` means ``ATTRACTOR_DATA``, else the user's cache folder.
        batches: how many of the five training batches of 10,000 images to read.

    Shape:
        x ``(images, 3, 32, 32)`` from 0 to 255: red, green and blue; y ``(images,)`` from 0 to 9.

    References:
        Krizhevsky (2009), Learning multiple layers of features from tiny images.
    """
    one_of("half", half, get_args(Half))
    if whole("batches", batches, 1) > BATCHES:
        raise InputError(
            f"expected at most the {BATCHES} training batches of CIFAR-10, but got {batches}. "
            f"Try batches={BATCHES}."
        )
    parts = ["test batch"]
    if half == "train":
        parts = [f"train batch {n}" for n in range(1, batches + 1)]
        there = {found.part for found in verify("cifar10", root) if found.state != "missing"}
        lead = len(list(takewhile(there.__contains__, parts)))
        if 0 < lead < batches:
            raise InputError(
                f"expected {batches} training batches of CIFAR-10 below {data_root(root)}, but "
                f"found {lead}. Try batches={lead}, or run `attractor data fetch cifar10`."
            )
    records = np.concatenate([load_array("cifar10", part, root) for part in parts])
    return Images(colour(records[:, 1:]), classes(records[:, 0], CLASSES, "cifar10", half))


def load_cifar100(half: Half, root: str | Path | None = None, *, coarse: bool = False) -> Images:
    """CIFAR-100 in the order of its files, of the binary version.

    Args:
        half: ``"train"`` (50,000 images) or ``"test"`` (10,000).
        root: the data root; ``None`` means ``ATTRACTOR_DATA``, else the user's cache folder.
        coarse: the 20 classes of classes instead of the 100.

    Shape:
        x ``(images, 3, 32, 32)`` from 0 to 255: red, green and blue; y ``(images,)`` from 0 to 99,
        or to 19.

    References:
        Krizhevsky (2009), Learning multiple layers of features from tiny images.
    """
    one_of("half", half, get_args(Half))
    records = load_array("cifar100", half, root)
    label, number = (0, 20) if flag("coarse", coarse) else (1, 100)
    return Images(colour(records[:, 2:]), classes(records[:, label], number, "cifar100", half))


def colour(planes: NDArray[np.uint8]) -> Tensor:
    """The 1,024 red, green and blue bytes of each image as channels, rows and columns."""
    return torch.from_numpy(planes.reshape(-1, 3, 32, 32))
