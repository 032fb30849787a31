"""One head per task, for learners that are told the task."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence


class MultiHead(nn.Module):
    """Any classifier, answering only with the classes of the task it is told.

    Its last layer holds the heads of all tasks side by side; the outputs of other tasks' heads
    are minus infinity, so they count neither in the loss nor in the answer.

    Args:
        body: a network with an output for every class of every task.
        classes: the classes of each task, as ``[task.classes for task in stream]`` has them.

    Shape:
        x as the body takes it, task ``(batch,)``; y ``(batch, outputs)``, or ``(batch, time,
        outputs)`` for an answer at each step, packed if x is.

    Example:
        >>> from attractor.models import MLP
        >>> model = MultiHead(MLP([3, 8, 4]), [(0, 1), (2, 3)])
        >>> model(torch.zeros(2, 3), torch.tensor([0, 1])).isfinite()
        tensor([[ True,  True, False, False],
                [False, False,  True,  True]])

    References:
        van de Ven and Tolias (2018), Three scenarios for continual learning, arXiv:1904.07734
        (task-incremental learning).
    """

    needs_task = True

    def __init__(self, body: nn.Module, classes: Sequence[Sequence[int]]) -> None:
        super().__init__()
        self.body = body
        outputs = 1 + max(label for some in classes for label in some)
        hidden = torch.ones(len(classes), outputs, dtype=torch.bool)
        for task, some in enumerate(classes):
            hidden[task, list(some)] = False
        self.register_buffer("hidden", hidden, persistent=False)
        self.hidden: Tensor

    def forward(self, x: Any, task: Tensor) -> Any:
        y = self.body(x)
        if isinstance(y, PackedSequence):
            padded, lengths = pad_packed_sequence(y, batch_first=True)
            answers = self._answers(padded, task)
            return pack_padded_sequence(answers, lengths, batch_first=True, enforce_sorted=False)
        return self._answers(y, task)

    def _answers(self, y: Tensor, task: Tensor) -> Tensor:
        hidden = self.hidden[task]
        return y.masked_fill(hidden if y.ndim == 2 else hidden[:, None], -torch.inf)
