"""What a user gives an optimiser at a step, checked and as a rule wants it."""

import math
from collections.abc import Collection, Mapping
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from attractor.errors import InputError, shortened, unknown

DEFAULTS = {"lr": 1.0, "weight_decay": 0.0, "maximize": False, "momentum": 0.0, "tables": ()}
"""Of a parameter group; the momentum is there for schedulers that cycle one, and does nothing."""
GIVEN = {
    "params",
    "lr",
    "weight_decay",
    "maximize",
    "tables",
    "initial_lr",
    "name",
    "param_names",
}
"""What a user's parameter group may say."""
ELSEWHERE = {
    *("foreach", "fused", "capturable", "differentiable"),
    *("momentum", "dampening", "nesterov", "betas", "eps", "amsgrad", "centered"),
}
"""What optimisers of torch take and a rule does not; None and False ask for nothing."""


def gradient(parameter: Tensor, group: dict[str, Any], dtype: torch.dtype, decay: float) -> Tensor:
    """What the rule is told: the gradient to go down, in the rule's type, with this decay."""
    if parameter.grad is None:
        return torch.zeros_like(parameter, dtype=dtype)
    given = parameter.grad.to(dtype)
    if group["maximize"]:
        given = -given
    return given.add(parameter.to(dtype), alpha=decay) if decay else given


def group_of(given: Mapping[str, Any], decay: float) -> dict[str, Any]:
    """A user's parameter group, checked, with the rule's decay where None is asked for."""
    check_options(given, GIVEN)
    asked = dict(given)
    if asked.get("weight_decay", decay) is None:
        asked["weight_decay"] = decay
    return asked


def check_options(given: Mapping[str, Any], known: Collection[str] = ()) -> None:
    for name, value in given.items():
        if name in known:
            continue
        if name not in ELSEWHERE:
            acting = {"lr", "weight_decay", "maximize"} | ({"tables"} & set(known))
            raise unknown("option of a learned optimiser", name, acting)
        if value is not None and value is not False:
            raise InputError(
                f"expected options of a learned optimiser (lr, weight_decay, maximize), but got "
                f"{name}={value!r}. Leave it out: a rule has a memory of its own and one way to "
                "be computed."
            )


def check_numbers(group: Mapping[str, Any]) -> None:
    if not 0 <= _number(group["lr"]) < math.inf:
        raise InputError(
            f"expected lr to be at least 0, but got {_shown(group['lr'])}. It is a finite number "
            "that multiplies what the rule says; try lr=1."
        )
    if not 0 <= _number(group["weight_decay"]) < math.inf:
        raise InputError(
            f"expected weight_decay to be a finite number of at least 0, but got "
            f"{_shown(group['weight_decay'])}. Try weight_decay=0."
        )
    if not isinstance(group["maximize"], bool):
        raise InputError(
            f"expected maximize to be true or false, but got {shortened(group['maximize'])}. Try "
            "maximize=True."
        )


def _number(value: Any) -> float:
    """NaN for what is none."""
    real = isinstance(value, float | int | Real) and not isinstance(value, bool)
    return float(value) if real or (isinstance(value, Tensor) and value.numel() == 1) else math.nan


def _shown(value: Any) -> str:
    number = _number(value)
    return shortened(value) if math.isnan(number) else str(number)


def check_context(shown: Any) -> None:
    if not isinstance(shown, Tensor) or not shown.dim():
        raise InputError(
            f"expected the context to be a tensor (batch, ...), but got {type(shown).__name__}; "
            "nothing was changed. Try context=torch.as_tensor(x)."
        )
    if not shown.isfinite().all():
        raise InputError(
            "expected a context of finite numbers, but got others among them; nothing was "
            "changed. Skip this batch."
        )


def check_gradients(params: list[Tensor], dtype: torch.dtype) -> None:
    for parameter in params:
        gradient = parameter.grad
        if gradient is None:
            continue
        if gradient.layout != torch.strided:
            raise InputError(
                "expected dense gradients, but got a sparse one. Try nn.Embedding(..., "
                "sparse=False)."
            )
        if not gradient.isfinite().all():
            raise InputError(
                f"expected finite gradients, but that of a parameter of shape "
                f"{tuple(parameter.shape)} is not; nothing was changed. Skip this batch; "
                "torch.autograd.detect_anomaly() finds what made it."
            )
        if gradient.dtype != dtype and not gradient.to(dtype).isfinite().all():
            raise InputError(
                f"expected gradients that fit the rule's type, {dtype}, but that of a parameter of "
                f"shape {tuple(parameter.shape)} is up to {gradient.abs().max():.2g}; nothing was "
                f"changed. Skip this batch, or try rule.to({gradient.dtype})."
            )
