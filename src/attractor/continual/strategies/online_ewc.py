"""Online elastic weight consolidation."""

from typing import Any

from torch import Generator, Tensor, nn

from attractor.checks import number, whole
from attractor.continual.fisher import Anchor, check_size, fisher_diagonal, followed, penalty, pull
from attractor.continual.gradients import GroupGradients
from attractor.continual.strategies.base import Loss, Strategy
from attractor.tasks import Batch, StoredTask
from attractor.tasks.answers import cross_entropy
from attractor.tasks.streams import Stream


class OnlineEWC(Strategy):
    r"""Online EWC: one penalty, around the latest weights, from Fisher diagonals that fade.

    .. math::
        L &= L_V + \frac{\lambda}{2} \sum_k
            \gamma F^*_{V-1,k} (\theta_k - \theta^*_{V-1,k})^2 \\
        F^*_u &= \gamma F^*_{u-1} + F_u, \qquad F^*_0 = 0

    :math:`\theta^*_{V-1}` are the weights with which the latest task ended and :math:`F_u` is the
    Fisher diagonal of `EWC`, whose penalties keep the centres of all tasks instead.

    Args:
        strength: :math:`\lambda`.
        decay: :math:`\gamma`, how much of the old importance stays with each task.
        samples: training samples that give the Fisher diagonal; ``None`` means all.
        sampled: draw the labels from the model instead of taking those of the data.

    Example:
        >>> OnlineEWC(strength=3.0).decay
        0.95

    Departs from the paper: the Fisher diagonals are not normalised, which the paper does against
    tasks with losses of different scales; the empirical Fisher by default, from 1,000 samples.
    There the network that is held on to is distilled from another; here it learns by itself.

    References:
        Schwarz et al. (2018), Progress & compress: a scalable framework for continual learning,
        arXiv:1805.06370, section 3.2 (online EWC).
    """

    reference = "schwarz2018progress"
    limits = {"wider": "it keeps numbers for each of its weights"}  # noqa: RUF012

    def __init__(
        self,
        strength: float = 1.0,
        *,
        decay: float = 0.95,
        samples: int | None = 1000,
        sampled: bool = False,
    ) -> None:
        if samples is not None:
            whole("samples", samples, 1)
        self.strength, self.decay = number("strength", strength, 0), number("decay", decay, 0, 1)
        self.samples, self.sampled = samples, sampled
        if sampled:
            self.limits = {**self.limits, "no classes": "labels can be drawn from a softmax alone"}

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        self.gradients = GroupGradients(model)
        self.generator = generator
        self.anchor: Anchor | None = None
        self._base: Loss = cross_entropy
        return model

    def adopt(self, model: nn.Module) -> None:
        gradients = GroupGradients(model)
        anchors = [] if self.anchor is None else [self.anchor]
        found = followed(gradients.flat, self.gradients.flat, anchors, self)
        self.gradients, self.anchor = gradients, found[0] if found else None

    def observe(self, batch: Batch, base: Loss = cross_entropy) -> None:
        self._base = base

    def after_backward(self, model: nn.Module) -> None:
        if self.anchor is not None:
            pull(self.gradients.flat, [self.anchor], self.strength * self.decay)

    def end_task(self, model: nn.Module, task: StoredTask) -> None:
        fisher = fisher_diagonal(
            self.gradients,
            task,
            self._base,
            samples=self.samples,
            sampled=self.sampled,
            generator=self.generator,
        )
        if self.anchor is not None:
            fisher = self.decay * self.anchor.fisher + fisher
        self.anchor = Anchor(fisher, self.gradients.flat.values())

    def penalty(self) -> Tensor:
        """The penalty itself, for the curious."""
        anchors = [] if self.anchor is None else [self.anchor]
        return penalty(self.gradients.flat, anchors, self.strength * self.decay)

    def state_dict(self) -> dict[str, Any]:
        return {
            "anchor": None if self.anchor is None else self.anchor._asdict(),
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        anchor = None if state["anchor"] is None else Anchor(**state["anchor"])
        check_size(self.gradients.flat, [] if anchor is None else [anchor])
        self.anchor = anchor
        self.generator.set_state(state["generator"])
