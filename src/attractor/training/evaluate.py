"""How a model fares on what it was not trained on."""

from collections.abc import Iterable
from itertools import islice

import torch
from torch import nn

from attractor.errors import InputError
from attractor.tasks import Batch, Split, Task
from attractor.training.carried import begin, seen_by
from attractor.training.compatible import check_vocabulary
from attractor.training.labels import labels_told


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
    check_vocabulary(model, task)
    return averaged(model, task, islice(task.held_out(split, size), batches))


@torch.no_grad()
def averaged(model: nn.Module, task: Task, batches: Iterable[Batch]) -> dict[str, float]:
    """The task's measures over some batches, with the model in evaluation mode meanwhile.

    Example:
        >>> from attractor.models import Point
        >>> from attractor.tasks import Rosenbrock
        >>> task = Rosenbrock()
        >>> batch = task.batches(1, generator=torch.Generator()).draw()
        >>> averaged(Point(2), task, [batch]).keys()
        dict_keys(['loss'])
    """
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    totals: dict[str, tuple[float, int]] = {}
    reader = seen_by(model)
    training = model.training
    model.eval()
    try:
        for batch in batches:
            begin(reader, batch)
            with labels_told(reader, task, batch, " in a batch that is held out"):
                found = task.measure(reader, batch.to(device))
            for name, (value, count) in found.items():
                before, seen = totals.get(name, (0.0, 0))
                totals[name] = before + value, seen + count
    finally:
        model.train(training)
    if not totals:
        raise InputError(
            f"expected samples to measure on, but {type(task).__name__} gave none. "
            "Hold some data out, or measure on the batches of training."
        )
    return task.told({name: total / count for name, (total, count) in totals.items()})
