"""What a continual learner was able to do, and when."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from attractor.continual.metrics import measure
from attractor.state import Nested, pack
from attractor.tasks import StoredTask
from attractor.tasks.streams import Stream
from attractor.training.evaluate import evaluate


@dataclass(frozen=True)
class CurvePoint:
    """The accuracies on all tasks at one moment: after so many updates of a task."""

    task: int
    update: int
    accuracies: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Result:
    """A learnt stream.

    Args:
        matrix: the accuracies on all tasks, first of the untrained network, then after each task.
        names: of the tasks.
        model: as the last task left it.
        curve: accuracies during the tasks, if they were asked for.
        seconds: of the processor for each task, tests included.
        memory_bytes: what the strategy keeps beside the network: samples, old weights, rates.

    Shape:
        matrix ``(tasks + 1, tasks)``.

    Example:
        >>> result = Result(torch.tensor([[0.1, 0.2], [0.9, 0.3], [0.7, 0.8]]), ["a", "b"], None)
        >>> result.metrics["acc"]
        0.75
    """

    matrix: Tensor
    names: Sequence[str]
    model: nn.Module
    curve: Sequence[CurvePoint] = field(default=())
    seconds: Sequence[float] = field(default=())
    memory_bytes: int = 0

    @property
    def metrics(self) -> dict[str, float]:
        """All measures by their short names: see `attractor.continual.metrics`."""
        return measure(self.matrix)

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name} {value:.4f}" for name, value in self.metrics.items())
        return f"Result of {len(self.names)} tasks: {numbers}"


def accuracy(model: nn.Module, task: StoredTask, *, batch_size: int = 1000) -> float:
    """The share of a task's test samples, or of the steps asked, that the model gets right.

    Of a task that asks for numbers it is the measure that the task is judged by, its ``score``.

    Example:
        >>> from attractor.tasks import ArrayTask, Data
        >>> data = Data(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0]))
        >>> accuracy(torch.nn.Identity(), ArrayTask("half", 0, data, data, (0,)))
        0.5
    """
    return evaluate(model, task, "test", batch_size)[task.score]


def accuracies(model: nn.Module, stream: Stream) -> Tensor:
    """The accuracy on every task of a stream.

    Shape:
        ``(tasks,)``.
    """
    return torch.tensor([accuracy(model, task) for task in stream], dtype=torch.float64)


def bytes_of(state: Nested) -> int:
    """How many bytes the tensors of a state take; those of generators do not count.

    Example:
        >>> bytes_of({"memory": [torch.zeros(3), torch.zeros(5, dtype=torch.uint8)], "n": 3})
        17
    """
    tensors, _ = pack(state)
    return sum(one.nbytes for name, one in tensors.items() if not name.endswith("generator"))
