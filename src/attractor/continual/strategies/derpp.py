"""Dark experience replay with labels."""

from typing import Any

import torch
from torch import Generator, Tensor, nn

from attractor.checks import number
from attractor.continual.replay.ahead import Ahead
from attractor.continual.replay.episodes import MemoryKind
from attractor.continual.strategies.base import Loss, Strategy
from attractor.continual.strategies.der import DER, Memories
from attractor.tasks import Batch
from attractor.tasks.answers import cross_entropy
from attractor.tasks.streams import Stream


class DERpp(Strategy):
    r"""DER++: match old outputs as DER does, and learn the labels of other memories too.

    .. math::
        L = L_V + \alpha\, \frac{1}{|B_M| C} \sum_{i \in B_M} \| h_\theta(x_i) - z_i \|^2
            + \beta\, L_{B'_M}

    Args:
        size: samples kept in all.
        alpha: :math:`\alpha`, the weight of the old answers.
        beta: :math:`\beta`, the weight of the loss on the labels.
        replay: memories in each of :math:`B_M` and :math:`B'_M`, drawn apart.
        memory: as for `DER`.

    Example:
        >>> DERpp(200, beta=1.0).beta
        1.0

    Departs from the paper: as `DER`.

    References:
        Buzzega et al. (2020), Dark experience for general continual learning, arXiv:2004.07211,
        equation 6.
    """

    reference = "buzzega2020dark"
    adds_samples = True

    def __init__(
        self,
        size: int = 500,
        *,
        alpha: float = 0.5,
        beta: float = 0.5,
        replay: int = 10,
        memory: MemoryKind = "reservoir",
    ) -> None:
        self.dark = DER(size, alpha=alpha, replay=replay, memory=memory)
        self.size, self.alpha, self.replay, self.memory = size, alpha, replay, memory
        self.beta = number("beta", beta, 0)

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        self._labelled: Ahead[Memories] = Ahead(Generator().manual_seed(_seed(generator)))
        return self.dark.start(model, stream, generator=generator)

    def extend(self, stream: Stream) -> None:
        self.dark.extend(stream)
        self._labelled.forget()

    def loss(self, model: nn.Module, batch: Batch, base: Loss = cross_entropy) -> Tensor:
        loss = self.dark.loss(model, batch, base)
        old = self._labelled.look("labels", self.dark.memories)
        return loss if old is None else loss + self.beta * base(model, old[0])

    def observe(self, batch: Batch, base: Loss = cross_entropy) -> None:
        self._labelled.take("labels", self.dark.memories)
        self.dark.observe(batch, base)

    def state_dict(self) -> dict[str, Any]:
        return self.dark.state_dict() | {"labelled": self._labelled.generator.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.dark.load_state_dict(state)
        self._labelled.generator.set_state(state["labelled"])
        self._labelled.forget()


def _seed(generator: Generator) -> int:
    """The seed of another generator, drawn from this one."""
    return int(torch.randint(2**62, (), generator=generator))
