"""Experience replay with an asymmetric cross entropy."""

from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from attractor.checks import whole
from attractor.continual.replay.ahead import Ahead
from attractor.continual.replay.episodes import Episodes, MemoryKind
from attractor.continual.strategies.base import Loss, Strategy
from attractor.tasks import IGNORE, Batch
from attractor.tasks.answers import asked, cross_entropy
from attractor.tasks.streams import Stream


class ERACE(Strategy):
    r"""ER-ACE: new samples do not push old classes down; memories know all classes.

    .. math::
        L = L^{C_{new}}_{B_V} + L_{B_M}

    In the first term the outputs of classes that were seen before, but are not in the batch, are
    left out of the softmax; the second is an ordinary loss on memories.

    Args:
        size: samples kept in all.
        replay: memories in :math:`B_M`.
        memory: ``"reservoir"`` (the paper's), ``"classes"``, ``"ring"`` or ``"hard"`` (of each
            task).

    Example:
        >>> ERACE(200).replay
        10

    Departs from the paper: nothing; as in its code, classes that were not seen yet stay in the
    softmax, and there are memories from the second batch on.

    References:
        Caccia et al. (2022), New insights on reducing abrupt representation change in online
        continual learning, arXiv:2104.05025, equation 3.
    """

    reference = "caccia2022new"
    adds_samples = True
    limits = {"no classes": "it leaves classes out of the softmax of new samples"}  # noqa: RUF012

    def __init__(
        self, size: int = 500, *, replay: int = 10, memory: MemoryKind = "reservoir"
    ) -> None:
        self.size, self.memory = whole("size", size, 1), memory
        self.replay = whole("replay", replay, 1)

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        self.episodes = Episodes(
            self.memory, self.size, len(stream), generator=generator, stream=stream
        )
        self._ahead: Ahead[Batch | None] = Ahead(generator)
        self.seen: set[int] = set()
        return model

    def extend(self, stream: Stream) -> None:
        self.episodes.extend(stream)
        self._ahead.forget()

    def loss(self, model: nn.Module, batch: Batch, base: Loss = cross_entropy) -> Tensor:
        absent = sorted(self.seen - _classes(batch))
        loss = without(model, batch, base, absent) if absent else base(model, batch)
        old = self._ahead.look("replayed", self._draw)
        return loss if old is None else loss + base(model, old)

    def observe(self, batch: Batch, base: Loss = cross_entropy) -> None:
        self._ahead.take("replayed", self._draw)
        self.episodes.add(batch)
        self.seen |= _classes(batch)

    def _draw(self, generator: Generator) -> Batch | None:
        if not len(self.episodes):
            return None
        return self.episodes.draw_any(self.replay, self.episodes.tasks, generator)

    def state_dict(self) -> dict[str, Any]:
        return self.episodes.state_dict() | {"seen": sorted(self.seen)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.episodes.load_state_dict(state)
        self.seen = set(state["seen"])
        self._ahead.forget()


def _classes(batch: Batch) -> set[int]:
    return set(torch.unique(asked(batch)).tolist()) - {IGNORE}


def without(model: nn.Module, batch: Batch, base: Loss, classes: list[int]) -> Tensor:
    """The loss of a model that cannot answer with some classes.

    Example:
        >>> batch = Batch(torch.zeros(2, 3), torch.tensor([0, 1]))
        >>> round(float(without(nn.Identity(), batch, cross_entropy, [2])), 4)  # log 2
        0.6931
    """

    def hide(model: nn.Module, inputs: object, output: Any) -> Any:
        data = output.data if isinstance(output, PackedSequence) else output
        hidden = torch.zeros(data.shape[-1], dtype=torch.bool, device=data.device)
        hidden[classes] = True
        data = data.masked_fill(hidden, -torch.inf)
        return output._replace(data=data) if isinstance(output, PackedSequence) else data

    hook = model.register_forward_hook(hide)
    try:
        return base(model, batch)
    finally:
        hook.remove()
