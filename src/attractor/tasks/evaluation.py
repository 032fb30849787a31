"""How a network fares on what it was not trained on."""

from itertools import islice

import torch
from torch import nn

from attractor.tasks.base import Split, Task


@torch.no_grad()
def evaluate(
    network: nn.Module, task: Task, split: Split, batch_size: int, *, batches: int | None = None
) -> dict[str, float]:
    """The task's metrics over a split, each answer counting the same.

    Args:
        network: what answers, in evaluation mode while it does.
        task: what asks.
        split: ``"valid"`` or ``"test"``.
        batch_size: how many at a time.
        batches: stop after so many; None takes the whole split.

    Example:
        >>> from attractor.tasks import Digits
        >>> found = evaluate(nn.Linear(64, 10), Digits(order="flat"), "valid", 100)
        >>> sorted(found)
        ['accuracy', 'loss']
    """
    network.eval()
    place = next(network.parameters()).device
    totals: dict[str, float] = {}
    weight = 0
    for batch in islice(task.held_out(split, batch_size), batches):
        y = batch.y.to(place)
        found = task.metrics(network(batch.x.to(place)), y)
        count = task.weight(y)
        weight += count
        for name, value in found.items():
            totals[name] = totals.get(name, 0.0) + float(value) * count
    network.train()
    return {name: total / weight for name, total in totals.items()}
