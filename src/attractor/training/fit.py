"""Training in one call, for a model and data of the user's own."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from attractor.errors import InputError, unknown
from attractor.optimisers import Maker, attach, choose
from attractor.tasks import Judged, Task
from attractor.tasks.arrays import as_tensor
from attractor.tasks.datasets import over
from attractor.training.process import Row
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
    on_rows: Callable[[list[Row]], None] | None = None,
    **plan: Any,
) -> Fitted:
    """Train a model on a task, on arrays, or on any data set or loader of torch.

    Args:
        model: any module; samples come first in what it is given.
        data: a `Task`; ``(x, y)`` of arrays or tensors; a ``Dataset``; or a ``DataLoader``.
        optimiser: a key of ``OPTIMISERS``; ``{"name": key, **options}``; or whatever makes an
            optimiser from parameters, learned or not.
        valid: validation data of the same kind, measured every ``eval_every`` updates.
        loss: from answers and right answers to a number; by default cross entropy for classes and
            the mean squared error for other numbers.
        steps: updates.
        seed: decides the batches, and all that torch's default generator draws meanwhile, which is
            put back as it was.
        on_rows: told of each measurement.
        plan: further arguments of `Plan`: batch_size, clip, patience, keep_best and so on.

    Example:
        >>> x = torch.randn(200, 4)
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        >>> fitted = fit(model, (x, x.sum(1, keepdim=True)), valid=(x, x.sum(1, keepdim=True)))
        >>> fitted.valid["loss"] < 0.1
        True
    """
    task = as_task(data, valid, loss)
    watched = {"eval_every": None} if valid is None and not isinstance(data, Task) else {}
    for name in plan:
        if name not in Plan.__dataclass_fields__:
            raise unknown("option of fit", name, Plan.__dataclass_fields__)
    made = Plan(steps, **watched | plan)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if callable(optimiser):
            make: Maker = optimiser
        else:
            shown = task.batches(1, generator=torch.Generator()).draw().x
            make = choose(optimiser, model, shown)
        training = Supervised(
            model,
            task,
            attach(make, model),
            made,
            generator=torch.Generator().manual_seed(seed),
        )
        rows: list[Row] = []
        while not training.done:
            new = [{"step": training.step, **row} for row in training.advance()]
            rows += new
            if new and on_rows is not None:
                on_rows(new)
    held = {} if watched else training.measure("valid")
    return Fitted(model, rows, held)


def as_task(
    data: Any, valid: Any = None, loss: Callable[[Tensor, Tensor], Tensor] | None = None
) -> Task:
    """What users have, as a task."""
    if isinstance(data, Task):
        if valid is not None:
            raise InputError(
                "expected no valid beside a task, which has validation data of its own, but got "
                f"{type(valid).__name__}. Leave it out."
            )
        return data if loss is None else Judged(data, loss)
    kind: Any = None
    if isinstance(data, tuple):
        data, valid = _tensors(data, "data"), None if valid is None else _tensors(valid, "valid")
        kind = data.tensors[1]
    task = over(data, valid=valid)
    if loss is None and kind is not None and kind.is_floating_point():
        loss = F.mse_loss
    return task if loss is None else Judged(task, loss)


def _tensors(pair: Any, what: str) -> TensorDataset:
    if not isinstance(pair, tuple) or len(pair) != 2 or len(pair[0]) != len(pair[1]):
        sizes = [len(one) for one in pair] if isinstance(pair, tuple) else type(pair).__name__
        raise InputError(
            f"expected {what} as (x, y) with an answer for each input, but got {sizes}. "
            "Try (x, y) of arrays with samples first, or a Dataset."
        )
    x, y = map(as_tensor, pair)
    if x.dtype == torch.float64:
        x = x.float()
    if y.dtype == torch.float64:
        y = y.float()
    return TensorDataset(x, y if y.is_floating_point() else y.long())
