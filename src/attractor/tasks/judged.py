"""The data of a task, judged by another loss."""

from collections.abc import Callable, Iterator
from typing import ClassVar

from torch import Generator, Tensor, nn

from attractor.measures import LOSS
from attractor.tasks.answers import answer
from attractor.tasks.base import Sampler, Split, Task
from attractor.tasks.batch import Batch


class Judged(Task):
    """A task whose loss is a function of what the model says and of what it should say.

    Args:
        task: where the data come from.
        judge: from answers and right answers to the mean loss, such as ``F.mse_loss``.

    Example:
        >>> import torch
        >>> import torch.nn.functional as F
        >>> from attractor.tasks import Digits
        >>> task = Judged(Digits(order="flat"), lambda said, y: F.mse_loss(said[:, 0], y.float()))
        >>> batch = Batch(torch.eye(2), torch.tensor([1, 2]))
        >>> float(task.loss(nn.Identity(), batch)), task.measure(nn.Identity(), batch)
        (2.0, {'loss': (4.0, 2)})

    Departs from the paper: no paper.
    """

    measures: ClassVar = {"loss": LOSS._replace(unit="")}

    def __init__(self, task: Task, judge: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.task, self.judge = task, judge
        self.input_size, self.answers, self.timed = task.input_size, task.answers, task.timed
        self.output_size = getattr(task, "output_size", 1)

    def batches(self, size: int, *, generator: Generator) -> Sampler:
        return self.task.batches(size, generator=generator)

    def held_out(self, split: Split, size: int) -> Iterator[Batch]:
        return self.task.held_out(split, size)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.judge(answer(model, batch), batch.y)

    def measure(self, model: nn.Module, batch: Batch) -> dict[str, tuple[float, int]]:
        return {"loss": (self.loss(model, batch).item() * len(batch), len(batch))}
