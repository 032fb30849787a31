"""How a learning rate falls to zero by the last update."""

import math
from typing import Any, Literal

from torch.optim import Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LRScheduler

Schedule = Literal["cosine", "linear"]
"""Along half a cosine, or in a straight line."""


def falling(name: Schedule, done: int, steps: int) -> float:
    """The share of the first rate that is left after so many of the updates.

    Example:
        >>> falling("linear", 1, 4), falling("cosine", 0, 4)
        (0.75, 1.0)
    """
    return 1 - done / steps if name == "linear" else (1 + math.cos(math.pi * done / steps)) / 2


def scheduled(name: Schedule | None, optimiser: Optimizer, steps: int) -> LRScheduler | None:
    r"""A scheduler that is stepped after each update; ``None`` where the rate stays.

    .. math::
        \eta_t = \eta_0\,\tfrac{1}{2}(1 + \cos(\pi t / T)) \quad\text{or}\quad
        \eta_t = \eta_0\,(1 - t / T)

    Args:
        name: which.
        optimiser: whose rate falls.
        steps: :math:`T`, updates in all.

    Example:
        >>> import torch
        >>> sgd = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.4)
        >>> falling = scheduled("linear", sgd, 4)
        >>> sgd.step()
        >>> falling.step()
        >>> round(sgd.param_groups[0]["lr"], 3)
        0.3
    """
    match name:
        case "cosine":
            return CosineAnnealingLR(optimiser, steps)
        case "linear":
            return LambdaLR(optimiser, lambda step: 1 - step / steps)
    return None


def plain(scheduler: LRScheduler) -> dict[str, Any]:
    """The state of a scheduler without its functions, which are made anew."""
    return {name: value for name, value in scheduler.state_dict().items() if not callable(value)}
