"""What a model says to a batch, and how classes are judged."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from attractor.tasks.batch import IGNORE, Batch


class Penalised(NamedTuple):
    """What a model says in training, and what its loss has on top: the price of its activity.

    A penalty that hangs on what was asked is a function of the right answers.
    """

    said: Any
    penalty: Tensor | Callable[[Tensor], Tensor]


def tell(model: nn.Module, inputs: Any, task: Tensor | None) -> Any:
    """What a model gives; it is told the tasks of its inputs if it ``needs_task``."""
    # asked of the class, since a module looks long for what it does not have
    return model(inputs, task) if getattr(type(model), "needs_task", False) else model(inputs)


def answer(model: nn.Module, batch: Batch) -> Tensor:
    """What the model says to some samples.

    Shape:
        ``(samples, classes)``, or ``(samples, time, classes)`` for an answer at each step.
    """
    return priced(model, batch)[0]


def priced(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor | None]:
    """What the model says to some samples, and the penalty on top, if it has one."""
    output, penalty = unpriced(tell(model, batch.inputs, batch.task), lambda: asked(batch))
    if isinstance(output, PackedSequence):
        output = pad_packed_sequence(output, batch_first=True, total_length=batch.y.shape[1])[0]
    return output, penalty


def unpriced(output: Any, y: Callable[[], Tensor]) -> tuple[Any, Tensor | None]:
    """What a model said, and the penalty on top, if it has one, given the right answers."""
    if not isinstance(output, Penalised):
        return output, None
    said, penalty = output
    return said, penalty if isinstance(penalty, Tensor) else penalty(y())


def asked(batch: Batch) -> Tensor:
    """The right answers; nothing is asked beyond the end of a ragged sequence."""
    y: Tensor = batch.y
    if y.ndim == 1 or batch.lengths is None:
        return y
    steps = torch.arange(y.shape[1], device=y.device)
    beyond = steps >= batch.lengths[:, None]
    return y.masked_fill(beyond.view(*beyond.shape, *[1] * (y.ndim - 2)), IGNORE)


def counts(y: Tensor) -> Tensor:
    """Which answers are asked for; of vectors of numbers or labels, all of them.

    Shape:
        y ``(samples,)`` or ``(samples, time)`` of classes, or ``(samples, numbers)`` of a floating
        type; the result ``(samples,)`` or ``(samples, time)``.

    Example:
        >>> counts(torch.tensor([[1, IGNORE]])), counts(torch.zeros(2, 3))
        (tensor([[ True, False]]), tensor([True, True]))
    """
    return y != IGNORE if not y.is_floating_point() else torch.ones_like(y[:, 0], dtype=torch.bool)


def cross_entropy(model: nn.Module, batch: Batch) -> Tensor:
    r"""The mean cross entropy, or :math:`\sum_i w_i \ell_i` if the samples have weights.

    Example:
        >>> batch = Batch(torch.zeros(2, 3), torch.tensor([0, 1]))
        >>> round(float(cross_entropy(lambda x: torch.zeros(2, 4), batch)), 4)  # log 4
        1.3863
    """
    (output, penalty), y = priced(model, batch), asked(batch)
    if batch.weight is None:
        loss = mean_cross_entropy(output, y)
    else:
        loss = _weighted(output, y, batch.weight)
    return loss if penalty is None else loss + penalty


def _weighted(output: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    each = F.cross_entropy(
        output.flatten(0, -2), y.flatten(), ignore_index=IGNORE, reduction="none"
    )
    if y.ndim > 1:
        each = each.view_as(y).sum(1) / (y != IGNORE).sum(1).clamp(min=1)
    return each @ weight.to(each.dtype)


def mean_cross_entropy(output: Tensor, y: Tensor) -> Tensor:
    """The mean cross entropy over the answers that are asked for."""
    return F.cross_entropy(output.flatten(0, -2), y.flatten(), ignore_index=IGNORE)


def classified(model: nn.Module, batch: Batch) -> dict[str, tuple[float, int]]:
    """The sums of cross entropy and of right answers over those asked for, and their number.

    Example:
        >>> batch = Batch(torch.eye(4), torch.tensor([0, 0, 2, 3]))
        >>> classified(nn.Identity(), batch)["accuracy"]
        (3.0, 4)
    """
    output, y = answer(model, batch), asked(batch)
    count = int(torch.count_nonzero(y != IGNORE))
    right = torch.count_nonzero((output.argmax(-1) == y) & (y != IGNORE))
    loss = mean_cross_entropy(output, y).item() * count if count else 0.0
    return {
        "loss": (loss, count),
        "accuracy": (float(right), count),
    }
