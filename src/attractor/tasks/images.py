"""Images read as sequences: what the tasks on MNIST, its relatives and the digits share."""

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from attractor.errors import InputError
from attractor.tasks.base import Batch, Sampler, Split, Task
from attractor.tasks.options import flag, one_of, whole
from attractor.tasks.sampler import Shuffled

Order = Literal["rows", "pixels", "permuted", "flat", "image"]
"""What one step shows: a row, a pixel row by row, or a pixel in a fixed random order; or, for
networks without time, all of the image at once, as one vector or as channels, rows and columns."""


CLASSES = 10
"""Of every data set here."""


class Images(NamedTuple):
    """Images and their classes.

    Shape:
        x ``(images, height, width)`` of whole numbers, y ``(images,)``.
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
        order: ``"rows"``, ``"pixels"``, ``"permuted"``, ``"flat"`` or ``"image"``.
        permutation_seed: draws the one permutation that ``"permuted"`` applies to all images.
        trailing: end each sequence with a step of zeros, at which to answer.
        white: the value of a pixel that becomes 1.

    Shape:
        from ``(batch, height, width)`` to ``(time, batch, features)``: ``(height, batch, width)``
        for rows and ``(height * width, batch, 1)`` for pixels; one step more with `trailing`. At
        once: ``(batch, height * width)`` for flat and ``(batch, 1, height, width)`` for image.

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
        order: Order = "rows",
        permutation_seed: int = 0,
        trailing: bool = False,
        white: int,
    ) -> None:
        one_of("order", order, get_args(Order))
        whole("permutation_seed", permutation_seed, 0)
        self.order, self.trailing, self.white = order, flag("trailing", trailing), white
        self.at_once = order in ("flat", "image")
        if self.at_once and trailing:
            raise InputError(
                f"expected trailing=false with order={order!r}, which has no steps, but got true. "
                "Try order='rows'."
            )
        self.input_size = {"rows": width, "flat": height * width, "image": 1}.get(order, 1)
        self.steps = 1 if self.at_once else height * width // self.input_size + trailing
        self.permutation: Tensor | None = None
        if order == "permuted":
            generator = torch.Generator().manual_seed(permutation_seed)
            self.permutation = torch.randperm(height * width, generator=generator)

    def __call__(self, images: Tensor) -> Tensor:
        """The images as the network gets them."""
        if self.at_once:
            x = images.flatten(1) if self.order == "flat" else images[:, None]
            return x / self.white
        x = images.flatten(1)
        if self.permutation is not None:
            x = x[:, self.permutation]
        x = x.reshape(len(images), -1, self.input_size).transpose(0, 1).contiguous() / self.white
        return F.pad(x, (0, 0, 0, 0, 0, 1)) if self.trailing else x


class ImageTask(Task):
    """Name the class of an image that is read as a sequence; a subclass says whose images."""

    def __init__(
        self, splits: Splits, *, order: Order, permutation_seed: int, trailing: bool, white: int
    ) -> None:
        _, height, width = splits.train.x.shape
        self.splits = splits
        self.read = Reading(
            height,
            width,
            order=order,
            permutation_seed=permutation_seed,
            trailing=trailing,
            white=white,
        )
        self.input_size = self.read.input_size
        self.output_size = CLASSES
        self.answers = "once"
        self.timed = not self.read.at_once

    def sampler(self, batch_size: int, *, generator: Generator) -> Sampler:
        """Training batches in shuffled epochs."""
        x, y = self.splits.train
        return Shuffled(x, y, batch_size, generator, self.read)

    def held_out(self, split: Split, batch_size: int) -> Iterator[Batch]:
        """The batches of a split, in the order of the data set; the last may be smaller."""
        parts: Mapping[str, Images] = {"valid": self.splits.valid, "test": self.splits.test}
        x, y = parts[one_of("split", split, parts)]
        whole("batch_size", batch_size, 1)
        pieces = zip(torch.split(x, batch_size), torch.split(y, batch_size), strict=True)
        return (Batch(self.read(some_x), some_y) for some_x, some_y in pieces)


def split_off(images: Images, valid: int, test: int) -> Splits:
    """The last images as test set, those before as validation set, the rest for training."""
    sizes = [len(images.y) - valid - test, valid, test]
    parts = zip(torch.split(images.x, sizes), torch.split(images.y, sizes), strict=True)
    return Splits(*(Images(x, y) for x, y in parts))
