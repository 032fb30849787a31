"""Learn all tasks so far together."""

from typing import Any

import torch
from torch import Generator, Tensor, nn

from attractor.continual.gradients import weighted
from attractor.continual.rows import shares
from attractor.continual.strategies.base import Loss, Strategy, cross_entropy
from attractor.tasks.streams import Samples, Stream, joined


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
        return model

    def loss(self, model: nn.Module, batch: Samples, base: Loss = cross_entropy) -> Tensor:
        parts = [batch]
        past = self.stream.experiences[: int(batch.task[0])]
        for task in past:
            rows = torch.randint(len(task.train.y), (len(batch),), generator=self.generator)
            old = task.samples(rows, self.generator)
            parts.append(old.map(lambda t: t.to(batch.x.device)))
        both = joined(parts)
        if self.balanced and past:
            each = shares([len(part) for part in parts])
            each[len(batch) :] /= len(past)
            both = weighted(both, each)
        return base(model, both)

    def state_dict(self) -> dict[str, Any]:
        return {"generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.generator.set_state(state["generator"])
