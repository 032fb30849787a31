"""Synaptic intelligence."""

from typing import Any

import torch
from torch import Generator, Tensor, nn

from attractor.checks import number, positive
from attractor.continual.fisher import Anchor, check_size, followed, penalty, pull
from attractor.continual.flat import Flat
from attractor.continual.strategies.base import Strategy
from attractor.tasks import StoredTask
from attractor.tasks.streams import Stream


class SI(Strategy):
    r"""Synaptic intelligence: hold on to the weights whose changes lowered the loss.

    .. math::
        L &= L_V + c \sum_k \Omega_k (\theta_k - \theta^*_k)^2 \\
        \omega_k &= -\sum_t \nabla_k L_V(\theta_t)\, (\theta_{t+1,k} - \theta_{t,k}) \\
        \Omega_k &\leftarrow \Omega_k + \max\left(0,
            \frac{\omega_k}{(\theta^*_k - \theta^{start}_k)^2 + \xi}\right)

    The sum :math:`\omega` is over the updates of a task, :math:`\theta^*` are the weights with
    which the latest one ended.

    Args:
        strength: c.
        damping: :math:`\xi`, which bounds the importance of weights that hardly moved.

    Example:
        >>> SI(0.5).damping
        0.1

    Departs from the paper: an importance below zero, of a weight on whose way the loss grew, counts
    as zero, as in the authors' code.

    References:
        Zenke et al. (2017), Continual learning through synaptic intelligence, arXiv:1703.04200,
        equations 3 to 5.
    """

    reference = "zenke2017continual"
    limits = {"wider": "it keeps numbers for each of its weights"}  # noqa: RUF012

    def __init__(self, strength: float = 1.0, *, damping: float = 0.1) -> None:
        self.strength, self.damping = number("strength", strength, 0), positive("damping", damping)

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        self.flat = Flat(model)
        self.anchor = Anchor(torch.zeros_like(self.flat.values()), self.flat.values())
        self.path = torch.zeros_like(self.anchor.value)
        self._before: tuple[Tensor, Tensor] | None = None
        return model

    def adopt(self, model: nn.Module) -> None:
        self._settle()
        flat, before = Flat(model), self.flat
        (self.anchor,) = followed(flat, before, [self.anchor], self)
        self.flat, self.path = flat, flat.longer(self.path, before, torch.zeros_like(flat.values()))

    def after_backward(self, model: nn.Module) -> None:
        self._settle()
        self._before = (self.flat.gradient(), self.flat.values())
        if self.anchor.fisher.any():
            pull(self.flat, [self.anchor], 2 * self.strength)

    def _settle(self) -> None:
        """Add what the update before gained, once its end is known."""
        if self._before is not None:
            gradient, theta = self._before
            self.path -= gradient * (self.flat.values() - theta)
            self._before = None

    def end_task(self, model: nn.Module, task: StoredTask) -> None:
        self._settle()
        now = self.flat.values()
        gained = self.path / ((now - self.anchor.value).square() + self.damping)
        self.anchor = Anchor(self.anchor.fisher + gained.clamp(min=0), now)
        self.path = torch.zeros_like(now)

    def penalty(self) -> Tensor:
        """The penalty itself, for the curious."""
        return penalty(self.flat, [self.anchor], 2 * self.strength)

    def state_dict(self) -> dict[str, Any]:
        return {
            "anchor": self.anchor._asdict(),
            "path": self.path,
            "before": None if self._before is None else list(self._before),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        check_size(self.flat, [Anchor(**state["anchor"])])
        self.anchor, self.path = Anchor(**state["anchor"]), state["path"].clone()
        before = state["before"]
        self._before = None if before is None else (before[0].clone(), before[1].clone())
