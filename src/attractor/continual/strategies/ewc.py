"""Elastic weight consolidation."""

from typing import Any

from torch import Generator, Tensor, nn

from attractor.checks import number, whole
from attractor.continual.fisher import (
    Anchor,
    check_size,
    fisher_diagonal,
    followed,
    penalty,
    pull,
    summed,
)
from attractor.continual.gradients import GroupGradients
from attractor.continual.strategies.base import Loss, Strategy
from attractor.tasks import Batch, StoredTask
from attractor.tasks.answers import cross_entropy
from attractor.tasks.streams import Stream


class EWC(Strategy):
    r"""Elastic weight consolidation: hold on to the weights that earlier tasks depend on.

    .. math::
        L &= L_V + \frac{\lambda}{2} \sum_{u<V} d^{V-1-u} \sum_k
            F_{u,k} (\theta_k - \theta^*_{u,k})^2 \\
        F_u &= \frac1N \sum_i (\nabla_\theta \log p(y_i | x_i))^2 \text{ at } \theta^*_u

    The quadratics of all tasks are one, up to a constant: of :math:`F = \sum_u F_u` around
    :math:`\bar\theta = \sum_u F_u \theta^*_u / F`. Its gradient is added to that of the loss, which
    itself stays the loss on the batch.

    Args:
        strength: :math:`\lambda`; plain gradient descent of rate :math:`\alpha` diverges where
            :math:`\alpha \lambda F_k > 2`.
        samples: training samples that give the Fisher diagonal; ``None`` means all.
        sampled: draw the labels from the model, as the Fisher information asks for, instead of
            taking those of the data (the empirical Fisher).
        decay: :math:`d`, by which the penalties of earlier tasks are multiplied with each new one.
            Each keeps its own centre :math:`\theta^*_u`; `OnlineEWC` has but the latest.
        merge: keep one quadratic for all tasks; else one for each, to be looked at.

    Example:
        >>> EWC(strength=3.0).merge
        True

    Departs from the paper: the empirical Fisher by default, as in nearly all code, from 1,000
    samples; implementations have strengths from 3 (without the half) to 5,000. The paper has no
    decay.

    References:
        Kirkpatrick et al. (2017), Overcoming catastrophic forgetting in neural networks,
        arXiv:1612.00796, equation 3; Huszár (2018), Note on the quadratic penalties in elastic
        weight consolidation.
    """

    reference = "kirkpatrick2017overcoming"
    limits = {"wider": "it keeps numbers for each of its weights"}  # noqa: RUF012

    def __init__(
        self,
        strength: float = 1.0,
        *,
        samples: int | None = 1000,
        sampled: bool = False,
        decay: float = 1.0,
        merge: bool = True,
    ) -> None:
        if samples is not None:
            whole("samples", samples, 1)
        self.strength, self.samples = number("strength", strength, 0), samples
        self.sampled, self.merge = sampled, merge
        self.decay = number("decay", decay, 0, 1)
        if sampled:
            self.limits = {**self.limits, "no classes": "labels can be drawn from a softmax alone"}

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        self.gradients = GroupGradients(model)
        self.generator = generator
        self.anchors: list[Anchor] = []
        self._base: Loss = cross_entropy
        return model

    def adopt(self, model: nn.Module) -> None:
        gradients = GroupGradients(model)
        self.anchors = followed(gradients.flat, self.gradients.flat, self.anchors, self)
        self.gradients = gradients

    def observe(self, batch: Batch, base: Loss = cross_entropy) -> None:
        self._base = base

    def after_backward(self, model: nn.Module) -> None:
        if self.anchors:
            pull(self.gradients.flat, self.anchors, self.strength)

    def end_task(self, model: nn.Module, task: StoredTask) -> None:
        new = Anchor(self.fisher(task), self.gradients.flat.values())
        old = [Anchor(self.decay * fisher, value) for fisher, value in self.anchors]
        self.anchors = [summed([*old, new])] if self.merge else [*old, new]

    def fisher(self, task: StoredTask) -> Tensor:
        """The diagonal of the Fisher information on a task.

        Shape:
            ``(parameters,)``.
        """
        return fisher_diagonal(
            self.gradients,
            task,
            self._base,
            samples=self.samples,
            sampled=self.sampled,
            generator=self.generator,
        )

    def penalty(self) -> Tensor:
        """The penalty itself, for the curious; summed, it lacks a constant."""
        return penalty(self.gradients.flat, self.anchors, self.strength)

    def state_dict(self) -> dict[str, Any]:
        return {
            "anchors": [anchor._asdict() for anchor in self.anchors],
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        anchors = [Anchor(**anchor) for anchor in state["anchors"]]
        check_size(self.gradients.flat, anchors)
        self.anchors = anchors
        self.generator.set_state(state["generator"])
