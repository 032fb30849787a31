"""Averaged gradient episodic memory."""

from typing import Any

import torch
from torch import Generator, Tensor, nn

from attractor.continual.base import Loss, Strategy, cross_entropy
from attractor.continual.episodes import rows, samples
from attractor.continual.flat import Flat
from attractor.memory import Slots
from attractor.tasks.options import whole
from attractor.tasks.streams import Samples, Stream


class AGEM(Strategy):
    r"""Averaged GEM: let the loss on a batch of memories of all earlier tasks not grow.

    .. math::
        \tilde g = g - \frac{g^\top g_{ref}}{g_{ref}^\top g_{ref}}\, g_{ref}
        \quad \text{if } g^\top g_{ref} < 0, \text{ else } g

    Args:
        per_class: samples kept of each class of each task, the newest.
        reference_batch: memories that give :math:`g_{ref}`, drawn at each update from those of all
            finished tasks.

    Example:
        >>> AGEM(per_class=25).reference_batch
        256

    Departs from the paper: nothing.

    References:
        Chaudhry et al. (2019), Efficient lifelong learning with A-GEM, arXiv:1812.00420, equation
        11.
    """

    reference = "chaudhry2019agem"

    def __init__(self, per_class: int = 25, *, reference_batch: int = 256) -> None:
        self.per_class = whole("per_class", per_class, 1)
        self.reference_batch = whole("reference_batch", reference_batch, 1)

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        self.flat = Flat(model)
        self.generator = generator
        self.classes = stream.outputs
        self.memory = Slots(self.per_class, len(stream) * self.classes, newest=True)
        return model

    def loss(self, model: nn.Module, batch: Samples, base: Loss = cross_entropy) -> Tensor:
        self._task, self._base = int(batch.task[0]), base
        answer = batch.y if batch.y.ndim == 1 else torch.zeros_like(batch.task)
        self.memory.add(rows(batch), batch.task * self.classes + answer)
        return base(model, batch)

    def after_backward(self, model: nn.Module) -> None:
        if self._task == 0:
            return
        g = self.flat.gradient()
        model.zero_grad()
        torch.autograd.backward(self._base(model, self._draw()))
        self.flat.set_gradient(project(g, self.flat.gradient()))

    def _draw(self) -> Samples:
        """Memories of the finished tasks, all equally likely."""
        groups = range(self._task * self.classes)
        starts = torch.arange(len(groups)) * self.per_class
        sizes = torch.tensor(self.memory.sizes(groups))
        held = (torch.arange(self.per_class) < sizes[:, None]).nonzero()
        chosen = torch.randperm(len(held), generator=self.generator)[: self.reference_batch]
        places = starts[held[chosen, 0]] + held[chosen, 1]
        return samples(self.memory.store.read(places))

    def state_dict(self) -> dict[str, Any]:
        return {"memory": self.memory.state_dict(), "generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.memory.load_state_dict(state["memory"])
        self.generator.set_state(state["generator"])


def project(g: Tensor, reference: Tensor) -> Tensor:
    """The nearest gradient that does not point away from the reference.

    Shape:
        all ``(parameters,)``.

    Example:
        >>> project(torch.tensor([1.0, -1.0]), torch.tensor([0.0, 2.0]))
        tensor([1., 0.])
        >>> project(torch.tensor([1.0, 1.0]), torch.tensor([0.0, 2.0]))
        tensor([1., 1.])
    """
    overlap = g @ reference
    if overlap >= 0:
        return g
    return g - overlap / (reference @ reference) * reference
