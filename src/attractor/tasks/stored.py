"""What tasks have in common whose training samples are stored under numbers."""

from abc import abstractmethod
from typing import Any, Self

from torch import Generator, Tensor

from attractor.tasks.base import Sampler, Split, Task
from attractor.tasks.batch import Batch
from attractor.tasks.samplers import BLOCK, Shuffled


class StoredTask(Task):
    """A task with a number of training samples, each of which can be asked for."""

    name: str
    """In words, for tables and messages."""
    place: int
    """In a stream, from 0."""
    classes: tuple[int, ...]
    """The answers that occur."""
    train: Any
    """The training samples as they are stored."""
    test: Any
    """The test samples as they are stored."""
    block: int = BLOCK
    """Batches that are read at once."""

    keeps_raw: bool = False
    """Whether a batch has its samples as they are stored too, for memories to keep."""

    asks_classes: bool = True
    """Whether the answer is the number of a class; else it is a vector, of numbers or labels."""

    score: str = "accuracy"
    """The measure that a learner's matrix has of it."""

    @abstractmethod
    def __len__(self) -> int:
        """How many training samples there are."""

    @abstractmethod
    def samples(self, index: Tensor, generator: Generator | None = None) -> Batch:
        """Training samples by their numbers; the generator draws the noise, if there is any."""

    def see(self, stored: Tensor, generator: Generator | None = None) -> Tensor:
        """Stored samples as a model is shown them; the generator draws the noise."""
        return stored

    @abstractmethod
    def first(self, split: Split, count: int) -> Batch:
        """The first held-out samples, read for the moment: nothing is kept."""

    @abstractmethod
    def at(self, place: int) -> Self:
        """The same task at another place in a stream."""

    @abstractmethod
    def feed(self, digest: Any) -> None:
        """Tell a hash what the task is, so that another one has another sum."""

    def batches(self, size: int, *, generator: Generator) -> Sampler:
        """Training batches in shuffled epochs."""
        return Shuffled(self, size, generator=generator)
