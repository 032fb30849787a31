"""Objectives without data: what tasks have in common in which a learner only seeks a minimum."""

from abc import abstractmethod
from collections.abc import Iterator

from torch import Generator, Tensor

from attractor.tasks.base import Batch, Sampler, Split, Task
from attractor.tasks.options import whole
from attractor.tasks.sampler import expect_keys


class Repeated(Sampler):
    """The same batch again and again.

    Args:
        batch: which.

    Example:
        >>> import torch
        >>> sampler = Repeated(Batch(torch.eye(2), torch.zeros(2)))
        >>> sampler.draw() is sampler.draw()
        True

    Departs from the paper: no paper.
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch

    def draw(self) -> Batch:
        return self.batch

    def state_dict(self) -> dict[str, Tensor]:
        return self.batch._asdict()

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        expect_keys(state, set(Batch._fields))
        self.batch = Batch(**state)


class Objective(Task):
    r"""A function of a point :math:`\theta` in `dimension` dimensions, to be made small.

    Each sampler draws a function once and shows it in every batch: the rows of x are directions,
    and a model, such as `attractor.models.Point`, answers with :math:`x\theta`, the components of
    its point along them. The size of a batch is of no account, and nothing is held out.
    """

    def __init__(self, dimension: int, least: int = 1) -> None:
        self.dimension = whole("dimension", dimension, least)
        self.input_size = dimension
        self.output_size = 1
        self.answers = "once"
        self.timed = False

    @abstractmethod
    def draw(self, *, generator: Generator) -> Batch:
        """A fresh function, decided by the generator alone."""

    def sampler(self, batch_size: int, *, generator: Generator) -> Sampler:
        """A function drawn with the generator, always the same from then on."""
        whole("batch_size", batch_size, 1)
        return Repeated(self.draw(generator=generator))

    def held_out(self, split: Split, batch_size: int) -> Iterator[Batch]:
        """Nothing: a function has no data that a learner could not have seen."""
        return iter(())

    @abstractmethod
    def loss(self, output: Tensor, y: Tensor) -> Tensor:
        """The value of the function."""

    def metrics(self, output: Tensor, y: Tensor) -> dict[str, Tensor]:
        """The value of the function."""
        return {"loss": self.loss(output, y)}

    def weight(self, y: Tensor) -> int:
        """One, whatever the dimension."""
        return 1
