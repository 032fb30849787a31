"""Memory aware synapses."""

from typing import Any

import torch
from torch import Generator, Tensor, nn

from attractor.checks import number, whole
from attractor.continual.fisher import Anchor, check_size, followed, of_samples, penalty, pull
from attractor.continual.gradients import GroupGradients
from attractor.continual.strategies.base import Strategy
from attractor.tasks import Batch, StoredTask
from attractor.tasks.answers import answer, asked, counts
from attractor.tasks.streams import Stream


class MAS(Strategy):
    r"""Memory aware synapses: hold on to the weights that the outputs depend on; needs no labels.

    .. math::
        L &= L_V + \lambda \sum_k \Omega_k (\theta_k - \theta^*_k)^2 \\
        \Omega_k &= \sum_{u<V} \frac1{N_u} \sum_{i=1}^{N_u}
            \left| \frac{\partial \| h_\theta(x_i) \|^2}{\partial \theta_k} \right|

    :math:`\theta^*` are the weights with which the latest task ended. Labels are not needed.

    Args:
        strength: :math:`\lambda`. Plain SGD at a rate :math:`\alpha` overshoots, and diverges,
            where :math:`\alpha \lambda \Omega_k > 1`: on split MNIST at 0.03 with a strength of 1.
        samples: training samples of each task that give :math:`\Omega`; ``None`` means all.

    Example:
        >>> MAS(1.0).samples
        1000

    Departs from the paper: its equation 2 averages over all samples seen; here the tasks are
    summed, as its section 4.2 has it for several tasks. From 1,000 samples of each by default.

    References:
        Aljundi et al. (2018), Memory aware synapses: learning what (not) to forget,
        arXiv:1711.09601, equations 2 to 4 (the squared norm of the outputs).
    """

    reference = "aljundi2018memory"
    limits = {"wider": "it keeps numbers for each of its weights"}  # noqa: RUF012

    def __init__(self, strength: float = 1.0, *, samples: int | None = 1000) -> None:
        if samples is not None:
            whole("samples", samples, 1)
        self.strength, self.samples = number("strength", strength, 0), samples

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        self.gradients = GroupGradients(model)
        self.generator = generator
        self.anchor: Anchor | None = None
        return model

    def adopt(self, model: nn.Module) -> None:
        gradients = GroupGradients(model)
        anchors = [] if self.anchor is None else [self.anchor]
        found = followed(gradients.flat, self.gradients.flat, anchors, self)
        self.gradients, self.anchor = gradients, found[0] if found else None

    def after_backward(self, model: nn.Module) -> None:
        if self.anchor is not None:
            pull(self.gradients.flat, [self.anchor], 2 * self.strength)

    def end_task(self, model: nn.Module, task: StoredTask) -> None:
        importance = of_samples(
            self.gradients,
            task,
            loudness,
            of=torch.abs,
            samples=self.samples,
            generator=self.generator,
        )
        if self.anchor is not None:
            importance = self.anchor.fisher + importance
        self.anchor = Anchor(importance, self.gradients.flat.values())

    def penalty(self) -> Tensor:
        """The penalty itself, for the curious."""
        anchors = [] if self.anchor is None else [self.anchor]
        return penalty(self.gradients.flat, anchors, 2 * self.strength)

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


def loudness(model: nn.Module, batch: Batch) -> Tensor:
    r"""The mean of :math:`\| h_\theta(x) \|^2`, or the sum with the weights of the samples.

    Of answers at each step, the mean over those asked; minus infinity does not count.

    Example:
        >>> float(loudness(nn.Identity(), Batch(torch.ones(2, 3), torch.tensor([0, 1]))))
        3.0
    """
    output, y = answer(model, batch), asked(batch)
    each = output.masked_fill(~output.isfinite(), 0).square().sum(-1)
    if each.ndim > 1:
        there = counts(y) if y.ndim == each.ndim else counts(y).any(-1)  # bits of each step
        each = (each * there).sum(1) / there.sum(1).clamp(min=1)
    return each.mean() if batch.weight is None else each @ batch.weight.to(each.dtype)
