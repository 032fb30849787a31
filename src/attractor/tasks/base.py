"""The contract of a task: its data, its loss and its metrics."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

IGNORE = -100
"""The label of a step at which nothing is asked."""

Split = Literal["valid", "test"]


class Batch(NamedTuple):
    """Sequences and what to answer.

    Shape:
        x ``(time, batch, features)``; y ``(batch,)`` for one answer at the end of each sequence,
        or ``(time, batch)`` for an answer at each step, `IGNORE` where none is asked. What is
        shown at once has no time: x ``(batch, ...)``, y ``(batch,)``.
    """

    x: Tensor
    y: Tensor


class Sampler(ABC):
    """Endless training batches; its state goes into a checkpoint, so that a run can go on."""

    @abstractmethod
    def draw(self) -> Batch:
        """The next batch."""

    @abstractmethod
    def state_dict(self) -> dict[str, Tensor]:
        """All that decides the batches to come."""

    @abstractmethod
    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go on where another sampler of the same task was."""


class Task(ABC):
    """One problem: where its batches come from, and how an answer is judged."""

    reference: ClassVar[str]
    """Key of the paper in ``references.bib``."""

    input_size: int
    output_size: int
    answers: Literal["once", "each step"]
    timed: bool = True
    """Whether a batch is a sequence; what is shown at once is not for a recurrent network."""

    @abstractmethod
    def sampler(self, batch_size: int, *, generator: Generator) -> Sampler:
        """Training batches, drawn with the generator."""

    @abstractmethod
    def held_out(self, split: Split, batch_size: int) -> Iterator[Batch]:
        """The batches of a split, always the same."""

    def loss(self, output: Tensor, y: Tensor) -> Tensor:
        """Mean cross entropy over the steps at which something is asked."""
        return F.cross_entropy(output.flatten(0, -2), y.flatten(), ignore_index=IGNORE)

    def metrics(self, output: Tensor, y: Tensor) -> dict[str, Tensor]:
        """Means over the batch, to be averaged with `weight`."""
        asked = y != IGNORE
        right = (output.argmax(-1) == y) & asked
        return {"loss": self.loss(output, y), "accuracy": right.sum() / asked.sum()}

    def weight(self, y: Tensor) -> int:
        """How many answers a batch asks for."""
        return int(torch.count_nonzero(y != IGNORE))
