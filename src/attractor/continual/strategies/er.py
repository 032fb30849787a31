"""Experience replay."""

from typing import Any, get_args

import torch
from torch import Generator, Tensor, nn

from attractor.checks import whole
from attractor.continual.gradients import weighted
from attractor.continual.replay.episodes import Episodes, Kind, OfTasks
from attractor.continual.rows import shares
from attractor.continual.strategies.base import Loss, Strategy, cross_entropy
from attractor.tasks.streams import Samples, Stream, joined


class ER(Strategy):
    r"""Experience replay: learn some samples of earlier tasks together with each batch.

    .. math::
        L = \frac{1}{|B^*|} \sum_{i \in B^*} \ell_i, \qquad
        B^* = B_V \cup B_{M_1} \cup \dots \cup B_{M_{V-1}}

    or, with ``balanced``, each task's loss averaged on its own, so that the new task keeps its rate
    however many tasks there are:

    .. math::
        L = L_V + \frac{1}{V-1} \sum_{u=1}^{V-1} L_u

    Args:
        memory: ``"hard"`` (the first samples of each task), ``"ring"`` (the newest of each),
            ``"reservoir"`` (a fair sample of all) or ``"classes"`` (of each class).
        size: samples kept: of each task for ``"hard"``, in all for the others.
        replay: samples replayed with each batch.
        each: replay so many of each earlier task; else in all. A reservoir, which holds the present
            task too, can only be replayed from in all.
        balanced: average each task's loss on its own.

    Example:
        >>> ER("ring", 250, replay=10).memory
        'ring'

    Departs from the paper: the defaults are the thesis's (250 of each task, 10 of each replayed);
    Chaudhry et al. replay 10 in all, from a reservoir or a ring: ``ER("reservoir", 1000)``. Neither
    has ``balanced``.

    References:
        Chaudhry et al. (2019), On tiny episodic memories in continual learning, arXiv:1902.10486,
        algorithm 1; Kuo (2021), thesis, equations 6.1 to 6.5.
    """

    reference = "chaudhry2019tiny"
    adds_samples = True

    def __init__(
        self,
        memory: Kind = "hard",
        size: int = 250,
        *,
        replay: int = 10,
        each: bool = True,
        balanced: bool = False,
    ) -> None:
        self.memory, self.size, self.balanced = memory, size, balanced
        self.replay = whole("replay", replay, 1)
        self.each = each and memory in get_args(OfTasks)

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        self.episodes = Episodes(self.memory, self.size, len(stream), generator=generator)
        return model

    def loss(self, model: nn.Module, batch: Samples, base: Loss = cross_entropy) -> Tensor:
        task = int(batch.task[0])
        past = list(range(task))
        old = self._draw(past) if self.episodes.holds(past) else None
        self.episodes.add(batch, task)
        if old is None:
            return base(model, batch)
        both = joined([batch, old])
        if self.balanced:
            sizes = self.episodes.drawn(self.replay, past) if self.each else [len(old)]
            of_old = shares(sizes) / len(sizes)
            both = weighted(both, torch.cat([shares([len(batch)]), of_old]))
        return base(model, both)

    def _draw(self, past: list[int]) -> Samples:
        draw = self.episodes.draw if self.each else self.episodes.draw_any
        return draw(self.replay, past)

    def state_dict(self) -> dict[str, Any]:
        return self.episodes.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.episodes.load_state_dict(state)
