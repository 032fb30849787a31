"""A page about one trained run: what its network does, as a dynamical system."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from attractor.experiments.restore import model_of, restored
from attractor.report.build import page
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


def analysis(folder: Path, *, data: Path | None = None) -> str:
    """One page about a finished run: gates, fixed points, gradients, curvature, what applies.

    Args:
        folder: of the run.
        data: the data root.

    Returns:
        The page; it holds its styles, scripts and data. The run is not changed.
    """
    config, process = restored(Path(folder), data=data)
    model = model_of(process).eval().cpu()
    task, batch = _shown(process)
    sections = list(seen(model, task, batch))
    return page(
        "analysis.html.j2",
        [one.figure for one in sections],
        title=f"{config.label}, seed {config.seed}: what it does",
        lead=f"{config.experiment}, {config.budget} budget. {_size(model)}; measured on {SAMPLES} "
        "held-out samples, the network as the run left it.",
        sections=sections,
        made=f"attractor analyse {Path(folder).name}",
    )


def seen(model: nn.Module, task: Any, batch: Batch) -> Iterator[Seen]:
    """All that applies to a model, in the order of the page."""

    def loss() -> Tensor:
        value: Tensor = task.loss(model, batch)
        return value

    found = recurrent_input(model, batch.x) if isinstance(batch.x, Tensor) else None
    if found is not None:
        layer, x = found
        yield from gates_seen(layer, x)
        yield gradients_seen(layer, x, answered(model, batch.y, len(x)))
        if not any(getattr(one, "sees_whole_sequence", False) for one in layer.modules()):
            yield from fixed_seen(layer, x)
            yield from jacobian_seen(layer, x)
        yield from portrait_seen(layer, x)
    elif isinstance(batch.x, Tensor):
        yield from depth_seen(model, batch.x, lambda answer: _loss_of(task, batch, answer))
    yield from curvature_seen(model, loss)


def _shown(process: Any) -> tuple[Any, Batch]:
    """A task and held-out samples of it: of a learner's tasks or levels, the last that it saw."""
    tasks = getattr(process, "stream", None) or getattr(process, "levels", None)
    if tasks is None:
        return process.task, next(iter(process.task.held_out("valid", SAMPLES)))
    place = process.level if hasattr(process, "levels") else process.task
    last = tasks[min(place, len(tasks) - 1)]
    return last, next(iter(last.held_out("test", SAMPLES)))


def _loss_of(task: Any, batch: Batch, answer: Tensor) -> Tensor:
    value: Tensor = task.loss(lambda x: answer, batch)
    return value


def _size(model: nn.Module) -> str:
    return f"{sum(p.numel() for p in model.parameters()):,} parameters"
