"""Objectives without data: what tasks have in common in which a learner only seeks a minimum."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from torch import Generator, Tensor, nn

from attractor.checks import whole
from attractor.measures import LOSS
from attractor.tasks.base import Sampler, Split, Task
from attractor.tasks.batch import Batch
from attractor.tasks.samplers import Repeated


class Objective(Task):
    r"""A function of a point :math:`\theta` in `dimension` dimensions, to be made small.

    Each sampler draws a function once and shows it in every batch: the rows of x are directions,
    and a model, such as `attractor.models.Point`, answers with :math:`x\theta`, the components of
    its point along them. The size of a batch does not matter, and nothing is held out.
    """

    measures: ClassVar = {"loss": LOSS._replace(unit="")}

    def __init__(self, dimension: int, least: int = 1) -> None:
        self.dimension = whole("dimension", dimension, least)
        self.input_size = dimension
        self.output_size = 1
        self.answers = "once"
        self.timed = False

    @abstractmethod
    def draw(self, *, generator: Generator) -> Batch:
        """A fresh function, decided by the generator alone."""

    def batches(self, size: int, *, generator: Generator) -> Sampler:
        """A function drawn with the generator, always the same from then on."""
        whole("size", size, 1)
        return Repeated(self.draw(generator=generator))

    def held_out(self, split: Split, size: int) -> Iterator[Batch]:
        """Nothing: a function has no data that a learner could not have seen."""
        return iter(())

    @abstractmethod
    def value(self, output: Tensor, y: Tensor) -> Tensor:
        """The value of the function, given the components of a point."""

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The value of the function."""
        return self.value(model(batch.x), batch.y)

    def measure(self, model: nn.Module, batch: Batch) -> dict[str, tuple[float, int]]:
        """The value of the function, which counts once, whatever the dimension."""
        return {"loss": (self.loss(model, batch).item(), 1)}
