"""Training in one call, for a model and data of the user's own."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from attractor.errors import InputError, unknown
from attractor.optimisers import Maker, attach, choose
from attractor.tasks import Task
from attractor.training.compatible import check
from attractor.training.data import as_task, batch_size_for
from attractor.training.process import Row, finish
from attractor.training.supervised import Plan, Supervised

Spec = str | dict[str, Any] | Maker
"""An optimiser by name, by name and options, or as what makes one from parameters."""


class Fitted(NamedTuple):
    """A trained model, what was measured on the way, and how it fares on validation data."""

    model: nn.Module
    rows: list[Row]
    valid: dict[str, float]


def fit(
    model: nn.Module,
    data: Any,
    *,
    optimiser: Spec = "adam",
    valid: Any = None,
    loss: Callable[[Tensor, Tensor], Tensor] | None = None,
    steps: int = 1000,
    seed: int = 0,
    on_rows: Callable[[list[Row]], None] = lambda rows: None,
    stop: Callable[[], bool] = bool,
    **plan: Any,
) -> Fitted:
    """Train a model on a task, on arrays, or on any data set or loader of torch.

    Args:
        model: any module; samples come first in what it is given.
        data: a `Task`; ``(x, y)`` of arrays or tensors; a ``Dataset``; a ``DataLoader``; or a list
            of samples ``(x, y)``, whose sequences may be of several lengths.
        optimiser: a key of ``OPTIMISERS``; ``{"name": key, **options}``; or whatever makes an
            optimiser from parameters, learned or not.
        valid: validation data, measured every ``eval_every`` updates and at the end; a task has its
            own, or none where ``eval_every=None``.
        loss: from answers and right answers to a number; by default cross entropy for classes and
            the mean squared error for other numbers.
        steps: updates.
        seed: decides the batches, and all that torch's default generator draws meanwhile, which is
            put back as it was.
        on_rows: told of each measurement.
        stop: asked after each update whether to end there, as if it were the last.
        plan: further arguments of `Plan`: batch_size (which a loader has of its own; by default 32,
            or all samples where there are fewer), clip, patience, keep_best and so on.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> x = torch.randn(200, 4)
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        >>> fitted = fit(model, (x, x.sum(1, keepdim=True)), valid=(x, x.sum(1, keepdim=True)))
        >>> fitted.valid["loss"] < 0.1
        True
    """
    for name in plan:
        if name not in Plan.__dataclass_fields__:
            raise unknown("option of fit", name, Plan.__dataclass_fields__)
    watched = valid is not None or isinstance(data, Task)
    if not watched:
        _expect_unwatched(plan)
    made = Plan(steps, **({} if watched else {"eval_every": None}) | plan)
    task = as_task(data, valid, loss, batch_size=plan.get("batch_size"))
    made = replace(made, batch_size=batch_size_for(task, plan.get("batch_size")))
    with torch.random.fork_rng(devices=[]):
        check(model, task)
        torch.manual_seed(seed)
        training = Supervised(
            model,
            task,
            attach(_maker(optimiser, model, task), model),
            made,
            generator=torch.Generator().manual_seed(seed),
            stop=stop,
        )
        rows = finish(training, on_rows=on_rows)
        measured = made.eval_every is not None
        return Fitted(model, rows, training.measure("valid") if measured else {})


def _maker(optimiser: Spec, model: nn.Module, task: Task) -> Maker:
    if isinstance(optimiser, str | Mapping):
        return choose(optimiser, model, task.shown().x)
    if not callable(optimiser) or isinstance(optimiser, Optimizer):
        raise InputError(
            "expected the name of an optimiser, or what makes one from parameters, but got "
            f"{type(optimiser).__name__} itself. Try partial(torch.optim.Adam, lr=0.001)."
        )
    return optimiser


def _expect_unwatched(plan: Mapping[str, Any]) -> None:
    """Refuse options that need validation data where there are none."""
    for name in ("patience", "keep_best", "stop_below", "average_when_stale", "eval_every"):
        if plan.get(name) not in (None, False):
            raise InputError(
                f"expected validation data for {name}={plan[name]}, but there are none. Give some "
                f"as valid=..., or leave {name} out."
            )
