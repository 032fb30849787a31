"""Learn all tasks so far together."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor, nn

from attractor.continual.replay.ahead import Ahead
from attractor.continual.strategies.base import Loss, Strategy, latest
from attractor.continual.weighting import Balanced
from attractor.tasks import Batch, joined
from attractor.tasks.answers import cross_entropy
from attractor.tasks.streams import Stream


class Joint(Strategy):
    r"""Learn each task together with all data of the earlier ones: what replay could reach.

    .. math::
        L = L_V + \frac{1}{V-1} \sum_{u=1}^{V-1} L_u \quad \text{on } B_u \subset \mathcal{D}_u

    With each batch come as many samples of each earlier task, from all of its training data. It is
    `ER` with a memory that keeps everything.

    Args:
        balanced: average each task's loss on its own, so that the new task keeps its rate however
            many tasks there are; else take one mean over all samples.

    Example:
        >>> Joint().reference
        'caruana1997multitask'

    Departs from the paper: the thesis's Oracle is one network that is thoroughly trained on the
    data of all tasks; this one meets the tasks in the order of the stream, and makes as many
    updates as any other learner.

    References:
        Kuo (2021), thesis, section 6.2.5 ("Oracle"); Caruana (1997), Multitask learning.
    """

    reference = "caruana1997multitask"
    adds_samples = True

    def __init__(self, *, balanced: bool = True) -> None:
        self.balanced = balanced

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        self.stream, self.generator = stream, generator
        self._ahead: Ahead[list[Batch]] = Ahead(generator)
        self._mean = Balanced()
        return model

    def loss(self, model: nn.Module, batch: Batch, base: Loss = cross_entropy) -> Tensor:
        drawn = self._ahead.look(*self._next(batch))
        old = [some.map(lambda t: t.to(batch.x.device)) for some in drawn]
        if self.balanced and old:
            return self._mean(model, batch, joined(old), [len(some) for some in old], base)
        return base(model, joined([batch, *old]))

    def observe(self, batch: Batch, base: Loss = cross_entropy) -> None:
        self._ahead.take(*self._next(batch))

    def _next(self, batch: Batch) -> tuple[object, Callable[[Generator], list[Batch]]]:
        """What comes with a batch: a name for it, and how it is drawn."""
        task, count = latest(batch), len(batch)
        return (task, count), partial(self._draw, task, count)

    def _draw(self, task: int, count: int, generator: Generator) -> list[Batch]:
        drawn = []
        for one in self.stream.tasks[:task]:
            rows = torch.randint(len(one), (count,), generator=generator)
            drawn.append(one.samples(rows, generator))
        return drawn

    def state_dict(self) -> dict[str, Any]:
        return {"generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.generator.set_state(state["generator"])
        self._ahead.forget()
