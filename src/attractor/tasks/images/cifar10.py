"""CIFAR-10, at once or as sequences, in colour or in grey."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from attractor.checks import flag
from attractor.tasks.images.cifar_files import load_cifar10
from attractor.tasks.images.task import Images, ImageTask, Order, Splits, split_off

LUMINANCE = (0.30, 0.59, 0.11)
"""How bright red, green and blue look."""

GREY_SIDE = 28


def grey_corner(x: Tensor) -> Tensor:
    """Colour images as grey ones of MNIST's size: the brightness of the first 28 rows and columns.

    Shape:
        from ``(images, 3, 32, 32)`` to ``(images, 28, 28)``, rounded to whole numbers.

    Example:
        >>> x = torch.tensor([100, 200, 0], dtype=torch.uint8)[:, None, None].expand(1, 3, 32, 32)
        >>> grey_corner(x)[0, 27, 27]
        tensor(148, dtype=torch.uint8)
    """
    corner = x[:, :, :GREY_SIDE, :GREY_SIDE]
    bright = sum(weight * corner[:, n] for n, weight in enumerate(LUMINANCE))
    assert isinstance(bright, Tensor)
    return bright.round().to(torch.uint8)


class CIFAR10(ImageTask):
    """CIFAR-10: name what is on a small colour photograph.

    The last tenth of the training images is for validation, 5,000 of all 50,000; the 10,000 test
    images are the test set. With fewer than five `batches` only the first files are used, as when
    a user has no more; such numbers do not compare with published ones. Pixels are divided by 255.

    Args:
        order: ``"rows"`` (32 steps of 96: 32 pixels of 3 colours), ``"pixels"`` (1,024 steps of 3)
            or ``"permuted"`` (likewise, in one fixed random order); ``"flat"`` (one vector of
            3,072: red, green, blue) or ``"image"`` (three channels), at once.
        permutation_seed: draws that order.
        trailing: end each sequence with a step of zeros, at which to answer.
        normalise: bring each channel to mean 0 and standard deviation 1 over the images that are
            not for test; or the mean that is subtracted and the deviation that divides.
        side: shrink images to so many rows and columns, each the mean of what it covers.
        grey: the brightness 0.30 R + 0.59 G + 0.11 B of the first 28 rows and columns, rounded,
            so that a network for MNIST can read them; one channel of 28 by 28.
        batches: how many of the five training files of 10,000 images to use.
        root: the data root; ``None`` means ``ATTRACTOR_DATA``, else the user's cache folder.

    Shape:
        x ``(batch, 32, 96)`` or ``(batch, 1024, 3)``, one step more with `trailing`; at once
        ``(batch, 3072)`` or ``(batch, 3, 32, 32)``; y ``(batch,)``.

    Example:
        >>> task = CIFAR10(order="image", batches=2)  # doctest: +SKIP
        >>> next(task.held_out("test", 100)).x.shape  # doctest: +SKIP
        torch.Size([100, 3, 32, 32])

    Departs from the paper: part of the training set is kept for validation. The grey images follow
    Kuo et al., who print 0.30 R + 0.59 B + 0.11 G; we take blue and green to be swapped there, as
    0.59 is green's share of brightness.

    References:
        Krizhevsky (2009), Learning multiple layers of features from tiny images; Kuo et al.
        (2020), MTL2L: a context aware neural optimiser, appendix B.2 (in grey).
    """

    reference = "krizhevsky2009learning"

    def __init__(
        self,
        *,
        order: Order = "rows",
        permutation_seed: int = 0,
        trailing: bool = False,
        normalise: bool | Sequence[float] = False,
        side: int | None = None,
        grey: bool = False,
        batches: int = 5,
        root: str | Path | None = None,
    ) -> None:
        seen = load_cifar10("train", root, batches=batches)
        train, valid, _ = split_off(seen, len(seen.y) // 10, 0)
        splits = Splits(train, valid, load_cifar10("test", root))
        if flag("grey", grey):
            splits = Splits(*(Images(grey_corner(x), y) for x, y in splits))
        super().__init__(
            splits,
            order=order,
            permutation_seed=permutation_seed,
            trailing=trailing,
            normalise=normalise,
            side=side,
            white=255,
        )
