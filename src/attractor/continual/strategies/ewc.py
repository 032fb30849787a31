"""Elastic weight consolidation."""

from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor, nn

from attractor.checks import whole
from attractor.continual.gradients import GroupGradients
from attractor.continual.strategies.base import Loss, Strategy, answer, asked, cross_entropy, plain
from attractor.errors import InputError
from attractor.tasks import IGNORE
from attractor.tasks.streams import Experience, Samples, Stream

PIECE = 500
"""Samples whose squared gradients are computed at once."""


class Anchor(NamedTuple):
    """What a quadratic penalty pulls towards, and how strongly.

    Shape:
        both ``(parameters,)``.
    """

    fisher: Tensor
    value: Tensor


class EWC(Strategy):
    r"""Elastic weight consolidation: hold on to the weights that earlier tasks depend on.

    .. math::
        L &= L_V + \frac{\lambda}{2} \sum_{u<V} \sum_k F_{u,k} (\theta_k - \theta^*_{u,k})^2 \\
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
        decay: weigh the penalty of earlier tasks by this much less with each new one (online EWC).
        merge: keep one quadratic for all tasks; else one for each, to be looked at.

    Example:
        >>> EWC(strength=3.0).merge
        True

    Departs from the paper: the empirical Fisher by default, as in nearly all code, from 1,000
    samples; implementations have strengths from 3 (without the half) to 5,000.

    References:
        Kirkpatrick et al. (2017), Overcoming catastrophic forgetting in neural networks,
        arXiv:1612.00796, equation 3; Schwarz et al. (2018), Progress & compress (decay); Huszár
        (2018), Note on the quadratic penalties in elastic weight consolidation.
    """

    reference = "kirkpatrick2017overcoming"

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
        self.strength, self.samples, self.sampled = strength, samples, sampled
        self.decay, self.merge = decay, merge

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        self.gradients = GroupGradients(model)
        self.generator = generator
        self.anchors: list[Anchor] = []
        self._base: Loss = cross_entropy
        return model

    def loss(self, model: nn.Module, batch: Samples, base: Loss = cross_entropy) -> Tensor:
        self._base = plain(base)
        return base(model, batch)

    def after_backward(self, model: nn.Module) -> None:
        if self.anchors:
            flat = self.gradients.flat
            gradient, theta = flat.gradient(), flat.values()
            for anchor in self.anchors:
                gradient.addcmul_(anchor.fisher, theta - anchor.value, value=self.strength)
            flat.set_gradient(gradient)

    def end_task(self, model: nn.Module, task: Experience) -> None:
        new = Anchor(self.fisher(model, task), self.gradients.flat.values())
        old = [Anchor(self.decay * fisher, value) for fisher, value in self.anchors]
        self.anchors = [merged([*old, new])] if self.merge else [*old, new]

    def fisher(self, model: nn.Module, task: Experience) -> Tensor:
        """The diagonal of the Fisher information on a task.

        Shape:
            ``(parameters,)``.
        """
        device = self.gradients.flat.parameters[0].device
        chosen = torch.randperm(len(task.train.y), generator=self.generator)[: self.samples]
        training = model.training
        model.eval()
        total = torch.zeros_like(self.gradients.flat.values())
        for index in torch.split(chosen, PIECE):
            batch = task.samples(index, self.generator).map(lambda t: t.to(device))
            if self.sampled:
                batch = self._relabelled(model, batch)
            total += self.gradients.squares(batch, self._base) * len(batch)
        model.train(training)
        return total / len(chosen)

    @torch.no_grad()
    def _relabelled(self, model: nn.Module, batch: Samples) -> Samples:
        chances = answer(model, batch).softmax(-1).cpu()
        drawn = torch.multinomial(chances.flatten(0, -2), 1, generator=self.generator)
        y = drawn.view(batch.y.shape).to(batch.y.device)
        y = torch.where(asked(batch) == IGNORE, IGNORE, y)
        return Samples(batch.x, y, batch.task, batch.lengths)

    def penalty(self) -> Tensor:
        """The penalty itself, for the curious; merged, it lacks a constant."""
        theta = self.gradients.flat.values()
        terms = [(f * (theta - value) ** 2).sum() for f, value in self.anchors]
        return self.strength / 2 * torch.stack([theta.new_zeros(()), *terms]).sum()

    def state_dict(self) -> dict[str, Any]:
        return {
            "anchors": [anchor._asdict() for anchor in self.anchors],
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        anchors = [Anchor(**anchor) for anchor in state["anchors"]]
        size = sum(self.gradients.flat.sizes)
        if any(len(anchor.fisher) != size for anchor in anchors):
            raise InputError(
                f"expected a Fisher diagonal of {size} parameters, but the state holds "
                f"{len(anchors[0].fisher)}. Resume with the model that was saved."
            )
        self.anchors = anchors
        self.generator.set_state(state["generator"])


def merged(anchors: list[Anchor]) -> Anchor:
    r"""One quadratic for several, up to a constant.

    Example:
        >>> one = Anchor(torch.tensor([1.0]), torch.tensor([0.0]))
        >>> merged([one, Anchor(torch.tensor([3.0]), torch.tensor([4.0]))])
        Anchor(fisher=tensor([4.]), value=tensor([3.]))
    """
    fisher = torch.stack([anchor.fisher for anchor in anchors]).sum(0)
    pull = torch.stack([anchor.fisher * anchor.value for anchor in anchors]).sum(0)
    # a weight on which nothing depends is pulled nowhere
    value = torch.where(fisher > 0, pull / fisher, anchors[-1].value)
    return Anchor(fisher, value)
