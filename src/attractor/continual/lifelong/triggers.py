r"""Signals that a network is full: when to grow before a level is failed.

Each looks at a level in windows of so many batches. A network whose level is not passed yet grows
when a window says that it is saturated; if none does, the chapter's rule stays, which is to grow
after a failure.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from attractor.cells import Recurrent
from attractor.checks import number, whole
from attractor.errors import InputError
from attractor.tasks import Batch

if TYPE_CHECKING:
    from attractor.continual.lifelong.curriculum import Curriculum


class Trigger(ABC):
    """A signal, watched in windows.

    Args:
        window: batches of a window.
        threshold: what the signal is held against.
    """

    def __init__(self, window: int = 100, threshold: float = 0.5) -> None:
        self.window = whole("window", window, 2)
        self.threshold = number("threshold", threshold, 0)
        self.values: list[float] = []

    def __repr__(self) -> str:
        return f"{type(self).__name__}(window={self.window}, threshold={self.threshold})"

    def start(self) -> None:
        """A new level, or a network that has grown."""
        self.values = []

    def look(self, learner: "Curriculum", batch: Batch, loss: float) -> bool:
        """Take note of an update; whether a window has ended that says the network is full."""
        self.values.append(self.signal(learner, batch, loss))
        if len(self.values) < self.window:
            return False
        full = self.full()
        self.values = []
        return full

    @abstractmethod
    def signal(self, learner: "Curriculum", batch: Batch, loss: float) -> float:
        """What is noted of one update."""

    def full(self) -> bool:
        """What a whole window says: its mean is above the threshold."""
        return sum(self.values) / len(self.values) > self.threshold


class Conflict(Trigger):
    r"""The mean share of the earlier levels whose gradients point against the new one's.

    .. math::
        \frac{1}{|W|} \sum_{t \in W} \frac{1}{l-1} \sum_{k<l} [\langle g_t, g_{t,k} \rangle < 0]

    These are the constraints of GEM's projection that are violated, to which its dual gives
    weights. In a full network what is new has to be paid for by what is old.

    Departs from the paper: the chapter grows after a failure alone.
    """

    def signal(self, learner: "Curriculum", batch: Batch, loss: float) -> float:
        found = getattr(learner.strategy, "conflict", None)
        if found is None:
            raise InputError(
                f"expected a strategy that projects gradients, as gem does, to see conflicts, but "
                f"got {learner.strategy!r}. Try the trigger plateau."
            )
        return float(found)


class Plateau(Trigger):
    r"""The loss has stopped falling: the second half of a window is hardly below the first.

    .. math::
        \bar L_2 > (1 - c) \bar L_1

    Departs from the paper: the chapter grows after a failure alone.
    """

    def __init__(self, window: int = 100, threshold: float = 0.02) -> None:
        super().__init__(window, threshold)

    def signal(self, learner: "Curriculum", batch: Batch, loss: float) -> float:
        return loss

    def full(self) -> bool:
        half = len(self.values) // 2
        first, second = sum(self.values[:half]) / half, sum(self.values[half : 2 * half]) / half
        return second > (1 - self.threshold) * first


class Rank(Trigger):
    r"""The states fill the room that they have: their effective rank is near the number of units.

    .. math::
        \frac1h \exp\Big(-\sum_i p_i \ln p_i\Big), \qquad p_i = \sigma_i / \sum_j \sigma_j

    where :math:`\sigma` are the singular values of the centred states of all steps of a batch. It
    is measured at the end of a window.

    Departs from the paper: the chapter grows after a failure alone. The effective rank is that of
    Roy and Vetterli (2007).
    """

    def signal(self, learner: "Curriculum", batch: Batch, loss: float) -> float:
        if len(self.values) + 1 < self.window:
            return 0.0
        return effective_rank(states(learner.model, learner.levels[learner.level], batch))

    def full(self) -> bool:
        return self.values[-1] > self.threshold


def effective_rank(h: Tensor) -> float:
    """The effective rank of some states as a share of the number of units.

    Shape:
        h ``(states, units)``.

    Example:
        >>> round(effective_rank(torch.eye(4).repeat(5, 1)), 2)  # three equal directions of four
        0.75
    """
    values = torch.linalg.svdvals(h - h.mean(0))
    p = values / values.sum().clamp(min=1e-12)
    return float(torch.exp(torch.special.entr(p).sum()) / h.shape[1])


@torch.no_grad()
def states(model: nn.Module, task: Any, batch: Batch) -> Tensor:
    """What the recurrent layers of a network put out on a batch, all steps one below the other.

    Shape:
        ``(samples * time, units)``.
    """
    layers = [one for one in model.modules() if isinstance(one, Recurrent)]
    if not layers:
        raise InputError(
            f"expected a recurrent network to measure the rank of its states, but got a "
            f"{type(model).__name__}. Try the trigger plateau."
        )
    found: list[Tensor] = []

    def note(layer: nn.Module, inputs: object, output: Any) -> None:
        h = output[0]
        found.append(h.data if not isinstance(h, Tensor) else h.flatten(0, -2))

    hook = layers[-1].register_forward_hook(note)
    try:
        task.loss(model, batch)
    finally:
        hook.remove()
    return torch.cat(found)


TRIGGERS: dict[str, type[Trigger]] = {"conflict": Conflict, "plateau": Plateau, "rank": Rank}
"""By name, as configurations have them."""
