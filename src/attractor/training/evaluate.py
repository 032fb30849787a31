"""How a model fares on what it was not trained on."""

from itertools import islice

import torch
from torch import nn

from attractor.tasks import Split, Task
from attractor.training.carried import seen_by


@torch.no_grad()
def evaluate(
    model: nn.Module, task: Task, split: Split, size: int, *, batches: int | None = None
) -> dict[str, float]:
    """The task's measures over a split, each answer counting the same, whatever the batch size.

    Args:
        model: what answers, in evaluation mode while it does.
        task: what asks.
        split: ``"valid"`` or ``"test"``.
        size: how many samples at a time.
        batches: stop after so many; None takes the whole split.

    Example:
        >>> from attractor.tasks import Digits
        >>> found = evaluate(nn.Linear(64, 10), Digits(order="flat"), "valid", 100)
        >>> sorted(found)
        ['accuracy', 'loss']
    """
    training = model.training
    model.eval()
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    totals: dict[str, tuple[float, int]] = {}
    reader = seen_by(model)
    for batch in islice(task.held_out(split, size), batches):
        for name, (value, count) in task.measure(reader, batch.to(device)).items():
            before, seen = totals.get(name, (0.0, 0))
            totals[name] = before + value, seen + count
    model.train(training)
    return {name: total / count for name, (total, count) in totals.items()}
