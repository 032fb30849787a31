"""Rates that fall within each task, and are at the next what they were."""

from torch.optim import Optimizer

from attractor.training.schedules import Schedule, falling

KEPT = "task_lr"
"""Under which each group keeps the rate with which its task began."""


def restore(optimiser: Optimizer) -> None:
    """Put the rates back to those with which the last task began, if there was one."""
    for group in optimiser.param_groups:
        group["lr"] = group.get(KEPT, group["lr"])


def keep(optimiser: Optimizer) -> None:
    """Note the rates with which a task begins."""
    for group in optimiser.param_groups:
        group[KEPT] = group["lr"]


def fall(optimiser: Optimizer, schedule: Schedule, done: int, updates: int) -> None:
    """Set the rates for the next update, after so many of all of the task's.

    Example:
        >>> import torch
        >>> sgd = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.4)
        >>> keep(sgd)
        >>> fall(sgd, "linear", 1, 4)
        >>> round(sgd.param_groups[0]["lr"], 3)
        0.3
    """
    for group in optimiser.param_groups:
        group["lr"] = group[KEPT] * falling(schedule, done, updates)
