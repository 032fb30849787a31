"""Images read as sequences or at once: what the tasks on MNIST, CIFAR-10 and the like share."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from attractor.checks import flag, number, one_of, positive, whole
from attractor.errors import InputError
from attractor.tasks.arrays import ArrayTask, Data

Order = Literal["rows", "pixels", "permuted", "flat", "image"]
"""What one step shows: a row, a pixel row by row, or a pixel in a fixed random order; or, for
networks without time, all of the image at once, as one vector or as channels, rows and columns."""


CLASSES = 10
"""Of every data set here."""


class Images(NamedTuple):
    """Images and their classes.

    Shape:
        x ``(images, height, width)`` or ``(images, channels, height, width)`` of whole numbers, y
        ``(images,)``.
    """

    x: Tensor
    y: Tensor


class Splits(NamedTuple):
    """The three parts of a data set; no image is in two of them."""

    train: Images
    valid: Images
    test: Images


class Reading:
    """How an image is read: in which order its pixels come, and on what scale.

    Args:
        height: rows of an image.
        width: columns of an image.
        channels: colours of a pixel.
        order: ``"rows"``, ``"pixels"``, ``"permuted"``, ``"flat"`` or ``"image"``.
        side: shrink images to so many rows and columns, each the mean of what it covers.
        permutation_seed: draws the one permutation that ``"permuted"`` applies to all images.
        trailing: end each sequence with a step of zeros, at which to answer.
        white: the value of a pixel that becomes 1.
        mean: is then subtracted, and
        std: divides the rest; numbers, or tensors ``(channels, 1, 1)``.

    Shape:
        from ``(batch, height, width)`` or ``(batch, channels, height, width)`` to ``(batch, time,
        features)``: ``(batch, height, width * channels)`` for rows, pixel by pixel, and ``(batch,
        height * width, channels)`` for pixels; one step more with `trailing`. At once: ``(batch,
        channels * height * width)`` for flat and ``(batch, channels, height, width)`` for image.

    Example:
        >>> read = Reading(2, 2, order="pixels", trailing=True, white=255)
        >>> read(torch.tensor([[[0, 51], [102, 255]]])).squeeze()
        tensor([0.0000, 0.2000, 0.4000, 1.0000, 0.0000])

    Departs from the paper: the permutation is a true one, so every pixel is read once; two
    public versions draw it with replacement, which loses 37% of the pixels.

    References:
        Le et al. (2015), A simple way to initialize recurrent networks of rectified linear
        units, arXiv:1504.00941, section 4.2.
    """

    def __init__(
        self,
        height: int,
        width: int,
        *,
        channels: int = 1,
        order: Order = "rows",
        side: int | None = None,
        permutation_seed: int = 0,
        trailing: bool = False,
        white: int,
        mean: Tensor | float = 0.0,
        std: Tensor | float = 1.0,
    ) -> None:
        one_of("order", order, get_args(Order))
        permutation_seed = whole("permutation_seed", permutation_seed, 0)
        self.shape, self.side = (channels, height, width), side
        if side is not None:
            self.side = whole("side", side, 1)
            if self.side > min(height, width):
                raise InputError(
                    f"expected side to be at most {min(height, width)}, as it shrinks images of "
                    f"{height} x {width}, but got {side}. Leave it out for whole images."
                )
            height = width = self.side
        self.order, self.trailing = order, flag("trailing", trailing)
        self.white, self.mean, self.std = white, mean, std
        self.at_once = order in ("flat", "image")
        if self.at_once and trailing:
            raise InputError(
                f"expected trailing=false with order={order!r}, which has no steps, but got true. "
                "Try order='rows'."
            )
        pixels = height * width
        self.input_size = channels * {"rows": width, "flat": pixels}.get(order, 1)
        self.steps = 1 if self.at_once else pixels * channels // self.input_size + trailing
        self.permutation: Tensor | None = None
        if order == "permuted":
            generator = torch.Generator().manual_seed(permutation_seed)
            self.permutation = torch.randperm(pixels, generator=generator)

    def __call__(self, images: Tensor) -> Tensor:
        """The images as the network gets them."""
        x = images.reshape(-1, *self.shape) / self.white
        if self.side is not None:
            x = F.adaptive_avg_pool2d(x, self.side)
        x = (x - self.mean) / self.std
        if self.at_once:
            return x if self.order == "image" else x.flatten(1)
        x = x.movedim(1, -1).flatten(1, 2)  # (batch, pixels, channels)
        if self.permutation is not None:
            x = x[:, self.permutation]
        x = x.reshape(len(images), -1, self.input_size)
        return F.pad(x, (0, 0, 0, 1)) if self.trailing else x


class ImageTask(ArrayTask):
    """Name the class of an image; a subclass says whose images."""

    def __init__(
        self,
        splits: Splits,
        *,
        order: Order,
        permutation_seed: int,
        trailing: bool,
        white: int,
        normalise: bool | Sequence[float] = False,
        side: int | None = None,
    ) -> None:
        *channels, height, width = splits.train.x.shape[1:]
        mean, std = scale(normalise, splits, white)
        train, valid, test = (Data(*part) for part in splits)
        super().__init__(
            name=type(self).__name__,
            place=0,
            train=train,
            valid=valid if len(valid.y) else None,
            test=test,
            classes=tuple(range(CLASSES)),
            read=Reading(
                height,
                width,
                channels=channels[0] if channels else 1,
                order=order,
                side=side,
                permutation_seed=permutation_seed,
                trailing=trailing,
                white=white,
                mean=mean,
                std=std,
            ),
            keep=False,
        )


def scale(
    normalise: bool | Sequence[float], splits: Splits, white: int
) -> tuple[Tensor | float, Tensor | float]:
    """What is subtracted from pixels and what divides the rest: given, found, or 0 and 1."""
    if isinstance(normalise, list | tuple):
        if len(normalise) != 2:
            raise InputError(
                "expected normalise to be true, false, or a mean and a standard deviation, but got "
                f"{normalise}. Try [0.5, 0.5]."
            )
        return number("normalise[0]", normalise[0], -1e6), positive("normalise[1]", normalise[1])
    return channel_statistics(splits, white) if flag("normalise", normalise) else (0.0, 1.0)


def channel_statistics(splits: Splits, white: int) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each channel over all images but the test set.

    Over MNIST these are, to four digits, the numbers in common use.

    Shape:
        both ``(channels, 1, 1)``, of pixels divided by `white`.
    """
    values = torch.arange(256, dtype=torch.float64) / white
    parts = [part.x.reshape(len(part.y), -1, *part.x.shape[-2:]) for part in splits[:2]]
    found = []
    for channel in zip(*(part.unbind(1) for part in parts), strict=True):
        counts = [torch.bincount(part.flatten(), minlength=256).double() for part in channel]
        share = sum(counts) / sum(part.numel() for part in channel)
        mean = share @ values
        found.append((mean, (share @ (values - mean) ** 2).sqrt()))
    mean, std = torch.tensor(found, dtype=torch.float32).T[..., None, None]
    return mean, std


def split_off(images: Images, valid: int, test: int) -> Splits:
    """The last images as test set, those before as validation set, the rest for training."""
    sizes = [len(images.y) - valid - test, valid, test]
    parts = zip(torch.split(images.x, sizes), torch.split(images.y, sizes), strict=True)
    return Splits(*(Images(x, y) for x, y in parts))
