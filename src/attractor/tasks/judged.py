"""The data of a task, judged by another loss."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor, nn

from attractor.errors import InputError
from attractor.measures import LOSS
from attractor.tasks.answers import answer, priced
from attractor.tasks.base import Sampler, Split, Task
from attractor.tasks.batch import Batch

Judge = Callable[[Tensor, Tensor], Tensor]
"""From answers and right answers to the mean loss."""


class Judged(Task):
    r"""A task whose loss is a function of what the model says and of what it should say.

    The judge is given all answers of a batch at once. Of padded sequences with an answer at each
    step it is given the steps that count, one below the other, without those beyond the ends. Of
    samples with weights it is given one after the other, and the loss is
    :math:`\sum_i w_i \ell_i`; measures leave the weights out.

    Args:
        task: where the data come from.
        judge: from answers and right answers to the mean loss, such as ``F.mse_loss``.

    Example:
        >>> import torch.nn.functional as F
        >>> from attractor.tasks import Digits
        >>> task = Judged(Digits(order="flat"), lambda said, y: F.mse_loss(said[:, 0], y.float()))
        >>> batch = Batch(torch.eye(2), torch.tensor([1, 2]))
        >>> float(task.loss(nn.Identity(), batch)), task.measure(nn.Identity(), batch)
        (2.0, {'loss': (4.0, 2)})

    Departs from the paper: no paper.
    """

    measures: ClassVar = {"loss": LOSS._replace(unit="")}

    def __init__(self, task: Task, judge: Judge) -> None:
        self.task, self.judge = task, judge
        self.input_size, self.answers, self.timed = task.input_size, task.answers, task.timed
        self.output_size = getattr(task, "output_size", 1)

    def batches(self, size: int, *, generator: Generator) -> Sampler:
        return self.task.batches(size, generator=generator)

    def shown(self) -> Batch:
        return self.task.shown()

    def held_out(self, split: Split, size: int) -> Iterator[Batch]:
        return self.task.held_out(split, size)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        said, penalty = priced(model, batch)
        if batch.weight is None:
            loss = self.judge(*_counted(said, batch))
        else:
            ones = [slice(i, i + 1) for i in range(len(batch))]
            each = [self.judge(*_counted(said[one], batch[one])) for one in ones]
            loss = torch.stack(each) @ batch.weight.to(each[0].dtype)
        return loss if penalty is None else loss + penalty

    def measure(self, model: nn.Module, batch: Batch) -> dict[str, tuple[float, int]]:
        said, y = _counted(answer(model, batch), batch)
        return {"loss": (self.judge(said, y).item() * len(y), len(y))}


def _counted(said: Any, batch: Batch) -> tuple[Any, Tensor]:
    """The answers that count and the right ones, once they are known to go together."""
    y = batch.y
    if not isinstance(said, Tensor):  # as of nn.LSTM: the judge knows which part is the answer
        return said, y
    if said.is_floating_point() and y.is_floating_point() and said.shape != y.shape:
        raise InputError(
            f"expected answers of the shape {tuple(y.shape)} that the right ones have, but the "
            f"model gives {tuple(said.shape)}. Try y.reshape(n, 1) for a model with one output, or "
            "y.long() for classes."
        )
    if batch.lengths is None or y.ndim == 1 or y.shape[1] != batch.x.shape[1]:
        return said, y
    steps = torch.arange(y.shape[1], device=y.device)
    counts = steps < batch.lengths[:, None].to(y.device)
    return said[counts], y[counts]
