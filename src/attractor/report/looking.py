"""Which of the things that can be seen apply to a network, in the order of a page."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from attractor.report.seen import (
    Seen,
    answered,
    curvature_seen,
    depth_seen,
    fixed_seen,
    gates_seen,
    gradients_seen,
    jacobian_seen,
    portrait_seen,
    recurrent_input,
)
from attractor.tasks.batch import Batch

SAMPLES = 16


def seen_in(process: Any, model: nn.Module) -> Iterator[Seen]:
    """All that applies to the network of a process, on samples that it was not trained on."""
    task, batch = _shown(process)
    return seen(model, task, batch)


def seen(model: nn.Module, task: Any, batch: Batch) -> Iterator[Seen]:
    """All that applies to a model, in the order of the page."""

    def loss() -> Tensor:
        value: Tensor = task.loss(model, batch)
        return value

    told = _told(model, batch)
    found = recurrent_input(model, told) if told else None
    if found is not None:
        layer, x = found
        yield from gates_seen(layer, x)
        yield gradients_seen(layer, x, answered(model, batch.y, len(x)))
        if not any(getattr(one, "sees_whole_sequence", False) for one in layer.modules()):
            yield from fixed_seen(layer, x)
            yield from jacobian_seen(layer, x)
        yield from portrait_seen(layer, x)
    elif told:
        yield from depth_seen(model, told, lambda answer: _loss_of(task, batch, answer))
    yield from curvature_seen(model, loss)


def _shown(process: Any) -> tuple[Any, Batch]:
    """A task and held-out samples of it: of a learner's tasks or levels, the last that it saw."""
    tasks = getattr(process, "stream", None) or getattr(process, "levels", None)
    if tasks is None:
        return process.task, next(iter(process.task.held_out("valid", SAMPLES)))
    place = process.level if hasattr(process, "levels") else process.task
    last = tasks[min(place, len(tasks) - 1)]
    return last, next(iter(last.held_out("test", SAMPLES)))


def _told(model: nn.Module, batch: Batch) -> tuple[Tensor, ...]:
    """What a model is called with, as `attractor.tasks.answers.tell` does; empty for pairs."""
    if not isinstance(batch.x, Tensor):
        return ()
    if batch.task is not None and getattr(type(model), "needs_task", False):
        return batch.x, batch.task
    return (batch.x,)


def _loss_of(task: Any, batch: Batch, answer: Tensor) -> Tensor:
    value: Tensor = task.loss(lambda x: answer, batch)
    return value
