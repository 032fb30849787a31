"""Stable training of a stream."""

from torch import nn
from torch.optim import Optimizer

from attractor.checks import number
from attractor.continual.strategies.base import Strategy, trains
from attractor.errors import InputError
from attractor.tasks import StoredTask


class Stable(Strategy):
    r"""Learn each task more slowly than the one before, so as to stay near where it ended.

    .. math::
        \alpha_V = \max(\alpha\, \gamma^{V-1}, \alpha_{min})

    The paper adds dropout, a property of the model (``MLP(sizes, dropout=0.25)``), momentum 0.8 and
    small batches.

    Args:
        gamma: by how much the rate falls with each task.
        least: the rate below which it does not fall, unless it begins there.

    Example:
        >>> Stable(0.8).gamma
        0.8

    Departs from the paper: nothing; 20 permutations have rate 0.1, gamma 0.8, 256 units, batch 10.

    References:
        Mirzadeh et al. (2020), Understanding the role of training regimes in continual learning,
        arXiv:2006.06958, section 4.
    """

    reference = "mirzadeh2020understanding"
    sets_rate = True

    def __init__(self, gamma: float = 0.8, *, least: float = 5e-5) -> None:
        if not 0 < gamma <= 1:
            raise InputError(f"expected gamma above 0 and at most 1, but got {gamma}. Try 0.8.")
        self.gamma, self.least = gamma, number("least", least, 0)

    def start_task(
        self, model: nn.Module, task: StoredTask, optimiser: Optimizer, updates: int
    ) -> None:
        for group in trains(optimiser).param_groups:
            rate = group.setdefault("first_lr", group["lr"])
            group["lr"] = max(rate * self.gamma**task.place, min(rate, self.least))
