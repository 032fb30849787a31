"""Learn to make images: the task of a model that bounds how likely an image is."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor, nn

from attractor.checks import flag, whole
from attractor.errors import InputError
from attractor.measures import Measure
from attractor.tables import make
from attractor.tasks.base import Sampler, Split, Task
from attractor.tasks.batch import Batch
from attractor.tasks.images.cifar10 import CIFAR10
from attractor.tasks.images.digits import Digits
from attractor.tasks.images.fashion_mnist import FashionMNIST
from attractor.tasks.images.kmnist import KMNIST
from attractor.tasks.images.mnist import MNIST
from attractor.tasks.images.stl10 import STL10
from attractor.tasks.images.svhn import SVHN
from attractor.tasks.images.task import ImageTask
from attractor.tasks.samplers import Shuffled

IMAGES: dict[str, Callable[..., ImageTask]] = {
    "cifar10": CIFAR10,
    "digits": Digits,
    "fashion_mnist": FashionMNIST,
    "kmnist": KMNIST,
    "mnist": MNIST,
    "stl10": STL10,
    "svhn": SVHN,
}

MEASURING = 0x64726177
"""The seed of a model's noise while it is measured."""


class Generate(Task):
    r"""Make images like those of a data set.

    The model gives, for each image, an upper bound of :math:`-\ln p(x)` in nats, such as `DRAW`
    does; the loss is its mean.

    Args:
        images: the data set: ``"mnist"``, ``"fashion_mnist"``, ``"kmnist"``, ``"cifar10"``,
            ``"svhn"``, ``"stl10"`` or ``"digits"``.
        side: shrink images to so many rows and columns.
        threshold: make each pixel 0 or 1, at half of the scale; else they stay between.
        samples: train on the first so many images alone, for a quick budget.
        root: the data root; ``None`` means ``ATTRACTOR_DATA``, else the user's cache folder.
        options: go to the task of the data set, such as ``batches=2`` of CIFAR-10.

    Shape:
        x ``(batch, channels, height, width)`` from 0 to 1; the class of each image is y, and is
        not asked for.

    Example:
        >>> task = Generate("digits")
        >>> task.features
        (1, 8, 8)

    Departs from the paper: MNIST is made binary by a threshold, not drawn anew.

    References:
        Gregor et al. (2015), DRAW: a recurrent neural network for image generation,
        arXiv:1502.04623, section 4.
    """

    reference = "gregor2015draw"
    measures: ClassVar[Mapping[str, Measure]] = {"loss": Measure("min", "nats per image")}
    answers = "once"
    timed = False
    output_size = 1

    def __init__(
        self,
        images: str = "mnist",
        *,
        side: int | None = None,
        threshold: bool = False,
        samples: int | None = None,
        root: str | Path | None = None,
        **options: Any,
    ) -> None:
        self.task: ImageTask = make(
            "data set",
            IMAGES,
            {"name": images, **options},
            order="image",
            side=side,
            root=root,
            normalise=False,  # a bound is of pixels from 0 to 1
            trailing=False,
            permutation_seed=0,
        )
        self.threshold = flag("threshold", threshold)
        self.name = f"images of {images}"
        self.count = len(self.task)
        if samples is not None:
            self.count = min(self.count, whole("samples", samples, 1))
        self.block = self.task.block
        self.input_size = self.features[0]

    @property
    def features(self) -> tuple[int, ...]:
        return self.task.features

    def __len__(self) -> int:
        return self.count

    def samples(self, index: Tensor, generator: Generator | None = None) -> Batch:
        """Training images by their numbers."""
        return self._read(self.task.samples(index))

    def batches(self, size: int, *, generator: Generator) -> Sampler:
        return Shuffled(self, size, generator=generator)

    def held_out(self, split: Split, size: int) -> Iterator[Batch]:
        return map(self._read, self.task.held_out(split, size))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        bound = _bound(model, batch)
        return bound.mean() if batch.weight is None else bound @ batch.weight.to(bound)

    def measure(self, model: nn.Module, batch: Batch) -> dict[str, tuple[float, int]]:
        """The bound with noise that is the same each time."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(MEASURING)
            return {"loss": (_bound(model, batch).sum().item(), len(batch))}

    def _read(self, batch: Batch) -> Batch:
        x = (batch.x > 0.5).float() if self.threshold else batch.x
        return Batch(x, batch.y)


def _bound(model: nn.Module, batch: Batch) -> Tensor:
    bound: Tensor = model(batch.inputs)
    if bound.shape != (len(batch),):
        raise InputError(
            f"expected a model that bounds the likelihood of each of {len(batch)} images, but it "
            f"gives a shape of {tuple(bound.shape)}. Try model.name=draw."
        )
    return bound
