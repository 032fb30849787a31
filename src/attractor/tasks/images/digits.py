"""The 1,797 handwritten digits that come with the package, read as sequences."""

from collections.abc import Sequence
from importlib.resources import files

import numpy as np
import torch

from attractor.tasks.images.task import Images, ImageTask, Order, Splits, split_off

SPLIT_SEED = 1797
"""Seed of the one shuffle before the split: the file has the digits writer by writer."""


def load_digits() -> Images:
    """The digits in the order of the file.

    Shape:
        x ``(1797, 8, 8)`` from 0 to 16, y ``(1797,)``.

    Example:
        >>> load_digits().x.shape
        torch.Size([1797, 8, 8])
    """
    path = files("attractor.tasks").joinpath("files", "digits.npz")
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return Images(torch.from_numpy(arrays["x"]), torch.from_numpy(arrays["y"]).long())


def digits_splits() -> Splits:
    """The digits, shuffled once: 1,297 for training, 250 for validation and 250 for test."""
    x, y = load_digits()
    shuffle = torch.randperm(len(y), generator=torch.Generator().manual_seed(SPLIT_SEED))
    return split_off(Images(x[shuffle], y[shuffle]), valid=250, test=250)


class Digits(ImageTask):
    """Handwritten digits of 8 by 8 pixels, which need no download.

    The 1,797 images are shuffled once, with a fixed seed, and split into 1,297 for training, 250
    for validation and 250 for test. Pixels, from 0 to 16 in the file, are scaled to [0, 1].

    Args:
        order: ``"rows"`` (8 steps of 8), ``"pixels"`` (64 steps of 1) or ``"permuted"`` (64
            steps of 1, in one fixed random order);
            ``"flat"`` (one vector) or ``"image"`` (one channel), at once.
        permutation_seed: draws that order.
        trailing: end each sequence with a step of zeros, at which to answer.
        normalise: bring each channel to mean 0 and standard deviation 1 over the images that are
            not for test; or the mean that is subtracted and the deviation that divides.
        side: shrink images to so many rows and columns, each the mean of what it covers.

    Shape:
        x ``(batch, 8, 8)`` or ``(batch, 64, 1)``, one step more with `trailing`; y ``(batch,)``.

    Example:
        >>> task = Digits(order="permuted")
        >>> batch = next(task.held_out("test", 50))
        >>> batch.x.shape, batch.y.shape
        (torch.Size([50, 64, 1]), torch.Size([50]))

    Departs from the paper: these are the images of its test set alone, and the split is ours.

    References:
        Alpaydin and Kaynak (1998), Optical recognition of handwritten digits, UCI Machine
        Learning Repository, doi:10.24432/C50P49 (CC BY 4.0).
    """

    reference = "alpaydin1998optical"

    def __init__(
        self,
        *,
        order: Order = "rows",
        permutation_seed: int = 0,
        trailing: bool = False,
        normalise: bool | Sequence[float] = False,
        side: int | None = None,
    ) -> None:
        super().__init__(
            digits_splits(),
            order=order,
            permutation_seed=permutation_seed,
            trailing=trailing,
            normalise=normalise,
            side=side,
            white=16,
        )
