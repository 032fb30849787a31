"""Learning without forgetting."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn
from torch.optim import Optimizer

from attractor.checks import number, positive
from attractor.continual.strategies.base import Loss, Strategy
from attractor.continual.teacher import Teacher
from attractor.tasks import IGNORE, Batch, StoredTask
from attractor.tasks.answers import answer, asked, cross_entropy
from attractor.tasks.streams import Stream


class LwF(Strategy):
    r"""Learning without forgetting: keep the outputs of the old network for the old classes.

    .. math::
        L = L_V + \lambda\, T^2 \frac{1}{|B|} \sum_{i \in B}
            \mathrm{KL}\left(\mathrm{softmax}(z_i / T) \,\|\, \mathrm{softmax}(h_\theta(x_i) / T)
            \right)

    over the outputs of the classes that came before; :math:`z_i` are the outputs of the network as
    the last task left it, to the samples of the new one. No sample is kept.

    Args:
        strength: :math:`\lambda`.
        temperature: T.

    Example:
        >>> LwF(1.0).temperature
        2.0

    Departs from the paper: the temperature's :math:`T^2` of Hinton et al., which keeps the size of
    the gradient, and no warming up of the new classes alone. One head, or a `MultiHead`, whose
    other heads are minus infinity and do not count.

    References:
        Li and Hoiem (2018), Learning without forgetting, arXiv:1606.09282, equation 2; Hinton et
        al. (2015), Distilling the knowledge in a neural network.
    """

    reference = "li2018learning"

    limits = {"no classes": "it distils the softmax over the old classes"}  # noqa: RUF012

    def __init__(self, strength: float = 1.0, *, temperature: float = 2.0) -> None:
        self.strength = number("strength", strength, 0)
        self.temperature = positive("temperature", temperature)

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        self.teacher, self.classes = Teacher(), list[int]()
        self._model = model
        return model

    def start_task(
        self, model: nn.Module, task: StoredTask, optimiser: Optimizer, updates: int
    ) -> None:
        self._model = model

    def loss(self, model: nn.Module, batch: Batch, base: Loss = cross_entropy) -> Tensor:
        loss = base(model, batch)
        if not self.teacher.knows:
            return loss
        said, output = self.teacher.says(batch), answer(model, batch)
        cost = distillation(output, said, self.classes, self.temperature, asked(batch))
        return loss + self.strength * cost

    def end_task(self, model: nn.Module, task: StoredTask) -> None:
        self.teacher.copy(model)
        self.classes = sorted({*self.classes, *task.classes})

    def state_dict(self) -> dict[str, Any]:
        return {"teacher": self.teacher.state_dict(), "classes": list(self.classes)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.teacher.load_state_dict(state["teacher"], self._model)
        self.classes = list(state["classes"])


def distillation(
    output: Tensor, said: Tensor, classes: list[int], temperature: float, y: Tensor
) -> Tensor:
    r"""The mean of :math:`T^2\, \mathrm{KL}(\mathrm{softmax}(z/T) \| \mathrm{softmax}(h/T))`.

    Args:
        output: what the network says.
        said: what the old one says.
        classes: the outputs that count.
        temperature: T.
        y: what is asked; steps at which nothing is do not count.

    Shape:
        output and said ``(samples, outputs)`` or ``(samples, time, outputs)``.

    Example:
        >>> z = torch.tensor([[1.0, 2.0, 5.0]])
        >>> float(distillation(z, z, [0, 1], 2.0, torch.tensor([0])))
        0.0
    """
    among = torch.tensor(classes, device=output.device)
    counts = (y != IGNORE).flatten()
    old, new = (t.flatten(0, -2)[counts][:, among] / temperature for t in (said, output))
    # heads of other tasks are minus infinity in both, and give and get nothing
    closed = old.isinf() | new.isinf()
    old, new = (t.masked_fill(closed, -1e9) for t in (old, new))
    each = F.kl_div(new.log_softmax(1), old.log_softmax(1), reduction="none", log_target=True)
    each = each.masked_fill(closed, 0)
    return temperature**2 * each.sum() / max(1, len(old))
