"""House numbers from street view: SVHN in its second format."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from scipy.io import loadmat

from attractor.checks import flag, one_of
from attractor.errors import InputError
from attractor.tasks.data.root import VARIABLE, data_root
from attractor.tasks.images.task import CLASSES, Images, ImageTask, Order, Splits, split_off

Part = Literal["train", "test", "extra"]


def load_svhn(part: Part, root: str | Path | None = None) -> Images:
    """One part of SVHN's format 2, cropped digits of 32 x 32, in the order of its file.

    The files are ``train_32x32.mat``, ``test_32x32.mat`` and ``extra_32x32.mat`` as published, in
    the data root or in its folder ``svhn``.

    Args:
        part: 73,257 images for training, 26,032 for test, 531,131 easier ones extra.
        root: the data root; ``None`` means ``ATTRACTOR_DATA``, else the user's cache folder.

    Shape:
        x ``(images, 3, 32, 32)`` from 0 to 255, y ``(images,)`` from 0 to 9: the file has 10 for
        the digit 0.

    References:
        Netzer et al. (2011), Reading digits in natural images with unsupervised feature learning.
    """
    name = f"{one_of('part', part, get_args(Part))}_32x32.mat"
    folder = data_root(root)
    path = next((p for p in (folder / "svhn" / name, folder / name) if p.exists()), None)
    if path is None:
        raise InputError(
            f"expected {name} in {folder / 'svhn'}, but there is none. Get it from "
            f"ufldl.stanford.edu/housenumbers, or set {VARIABLE} to a folder that has it."
        )
    try:
        found = loadmat(path, variable_names=["X", "y"])
        x, y = found["X"], found["y"].reshape(-1)
    except Exception as error:  # of a damaged file scipy may raise anything
        raise InputError(
            f"expected arrays X and y in {path}, but got: {error}. Get the file again."
        ) from error
    if x.ndim != 4 or x.shape[:3] != (32, 32, 3) or x.dtype != np.uint8 or x.shape[3] != len(y):
        raise InputError(
            f"expected images of 32 x 32 x 3 bytes and a label for each in {path}, but got "
            f"{x.dtype} of shape {x.shape} and {len(y)} labels. Get the file of format 2."
        )
    if not len(y):
        raise InputError(f"expected images in {path}, but there are none. Get the file again.")
    labels = torch.from_numpy(y.astype(np.int64)) % CLASSES
    if y.min() < 1 or y.max() > CLASSES:
        raise InputError(
            f"expected labels from 1 to {CLASSES} in {path}, but got {y.min()} to {y.max()}. "
            "Get the file again."
        )
    return Images(torch.from_numpy(np.ascontiguousarray(x.transpose(3, 2, 0, 1))), labels)


class SVHN(ImageTask):
    """Street-view house numbers: name the digit in the middle of a photograph of 32 x 32.

    The last tenth of the training images is for validation.

    Args:
        order: ``"rows"`` (32 steps of 96), ``"pixels"`` or ``"permuted"`` (1,024 steps of 3);
            ``"flat"`` (one vector) or ``"image"`` (three channels), at once.
        permutation_seed: draws the order of ``"permuted"``.
        trailing: end each sequence with a step of zeros, at which to answer.
        normalise: bring each channel to mean 0 and standard deviation 1 over the images that are
            not for test; or the mean that is subtracted and the deviation that divides.
        side: shrink images to so many rows and columns, each the mean of what it covers.
        extra: train on the 531,131 easier images, too.
        root: the data root; ``None`` means ``ATTRACTOR_DATA``, else the user's cache folder.

    Shape:
        x ``(batch, 32, 96)``, ``(batch, 1024, 3)``, ``(batch, 3072)`` or ``(batch, 3, 32, 32)``;
        y ``(batch,)``.

    Example:
        >>> task = SVHN(order="image")  # doctest: +SKIP

    Departs from the paper: the images are read as sequences, and part of the training set is
    kept for validation.

    References:
        Netzer et al. (2011), Reading digits in natural images with unsupervised feature learning.
    """

    reference = "netzer2011reading"

    def __init__(
        self,
        *,
        order: Order = "rows",
        permutation_seed: int = 0,
        trailing: bool = False,
        normalise: bool | Sequence[float] = False,
        side: int | None = None,
        extra: bool = False,
        root: str | Path | None = None,
    ) -> None:
        seen = load_svhn("train", root)
        train, valid, _ = split_off(seen, len(seen.y) // 10, 0)
        if flag("extra", extra):
            more = load_svhn("extra", root)
            train = Images(torch.cat([train.x, more.x]), torch.cat([train.y, more.y]))
        super().__init__(
            Splits(train, valid, load_svhn("test", root)),
            order=order,
            permutation_seed=permutation_seed,
            trailing=trailing,
            normalise=normalise,
            side=side,
            white=255,
        )
