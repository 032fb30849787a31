"""Experience replay."""

from functools import partial
from typing import Any, get_args

import torch
from torch import Generator, Tensor, nn

from attractor.checks import flag, whole
from attractor.continual.replay.ahead import Ahead
from attractor.continual.replay.episodes import Episodes, MemoryKind, OfTasks
from attractor.continual.strategies.base import Loss, Strategy, latest
from attractor.continual.weighting import Balanced
from attractor.errors import InputError
from attractor.tasks import Batch, joined
from attractor.tasks.answers import cross_entropy
from attractor.tasks.streams import Stream


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
        shared: share ``replay`` out among the earlier tasks at random, at least one of each, as the
            scripts behind figure 6.7 do: about so many in all (`shares`).

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
        memory: MemoryKind = "hard",
        size: int = 250,
        *,
        replay: int = 10,
        each: bool = True,
        balanced: bool = False,
        shared: bool = False,
    ) -> None:
        self.memory, self.size, self.balanced = memory, size, balanced
        self.replay = whole("replay", replay, 1)
        self.each = each and memory in get_args(OfTasks)
        if flag("shared", shared) and not self.each:
            raise InputError(
                "expected a memory that keeps tasks apart to share what is replayed out among "
                f"them, but got {memory!r} with each={each}. Try ring, or leave out shared."
            )
        self.shared = shared

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        self.episodes = Episodes(
            self.memory, self.size, len(stream), generator=generator, stream=stream
        )
        self._ahead: Ahead[Batch | None] = Ahead(generator)
        self._mean = Balanced()
        return model

    def loss(self, model: nn.Module, batch: Batch, base: Loss = cross_entropy) -> Tensor:
        task = latest(batch)
        old = self._ahead.look(task, partial(self._draw, task))
        if old is None:
            return base(model, batch)
        if not self.balanced:
            return base(model, joined([batch, old]))
        sizes = [len(old)]
        if self.each:
            sizes = torch.unique_consecutive(old.places, return_counts=True)[1].tolist()
        return self._mean(model, batch, old, sizes, base)

    def extend(self, stream: Stream) -> None:
        self.episodes.extend(stream)
        self._ahead.forget()

    def observe(self, batch: Batch, base: Loss = cross_entropy) -> None:
        task = latest(batch)
        self._ahead.take(task, partial(self._draw, task))
        self.episodes.add(batch)

    def _draw(self, task: int, generator: Generator) -> Batch | None:
        """What is replayed next in a task."""
        past = list(range(task))
        if not self.episodes.holds(past):
            return None
        if self.shared:
            past = self.episodes.before(task)
            return self.episodes.draw(
                self.episodes.shared(self.replay, task, generator), past, generator
            )
        draw = self.episodes.draw if self.each else self.episodes.draw_any
        return draw(self.replay, past, generator)

    def state_dict(self) -> dict[str, Any]:
        return self.episodes.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.episodes.load_state_dict(state)
        self._ahead.forget()
