"""The contract of a task: its data, its loss, and what is measured."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from torch import Generator, Tensor, nn

from attractor.measures import ACCURACY, LOSS, Measure
from attractor.tasks.answers import classified, cross_entropy
from attractor.tasks.batch import Batch

Split = Literal["valid", "test"]


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
    """One problem: where its batches come from, and how a model is judged on them.

    The loss and the measures given here are those of classes: mean cross entropy over the answers
    that are asked for, and the share that is right. A task with another loss says so in all three
    of `measures`, `loss` and `measure`.
    """

    reference: ClassVar[str]
    """Key of the paper in ``references.bib``."""

    measures: ClassVar[Mapping[str, Measure]] = {"loss": LOSS, "accuracy": ACCURACY}
    """What `measure` gives."""

    leading: str | None = None
    """The measure that ranks models, where it is none that should grow."""

    input_size: int
    """Features of an input; of a sequence, those of a step."""
    output_size: int
    """Numbers that a model answers with."""
    answers: Literal["once", "each step"]
    timed: bool = True
    """Whether a sample is a sequence; what is shown at once is not for a recurrent network."""
    symbolic: bool = False
    """Whether a step is the number of a symbol, below `input_size`, and not a vector."""

    @property
    def features(self) -> tuple[int, ...]:
        """The shape of a sample; of a sequence, that of a step."""
        return (self.input_size,)

    @abstractmethod
    def batches(self, size: int, *, generator: Generator) -> Sampler:
        """Training batches, drawn with the generator."""

    def shown(self) -> Batch:
        """A few training samples, to see what a model is shown."""
        return self.batches(1, generator=Generator()).draw()

    @abstractmethod
    def held_out(self, split: Split, size: int) -> Iterator[Batch]:
        """The batches of a split, always the same."""

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """What training makes small."""
        return cross_entropy(model, batch)

    def measure(self, model: nn.Module, batch: Batch) -> dict[str, tuple[float, int]]:
        """Of each measure the sum over a batch and how many it sums, to be averaged over all."""
        return classified(model, batch)

    def told(self, means: dict[str, float]) -> dict[str, float]:
        """The measures, from the means of what `measure` sums: adds those that are no means."""
        return means
