"""Learn all tasks so far together."""

from typing import Any

import torch
from torch import Generator, Tensor, nn

from attractor.continual.base import Loss, Strategy, cross_entropy
from attractor.tasks.streams import Samples, Stream, joined


class Joint(Strategy):
    r"""Learn each task together with all data of the earlier ones, the upper bound.

    .. math::
        L = \frac{1}{|B^*|} \sum_{i \in B^*} \ell_i, \qquad
        B^* = B_V \cup B_1 \cup \dots \cup B_{V-1}, \quad B_u \subset \mathcal{D}_u

    With each batch come as many samples of each earlier task, from all of its training data.

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

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        self.stream, self.generator = stream, generator
        return model

    def loss(self, model: nn.Module, batch: Samples, base: Loss = cross_entropy) -> Tensor:
        parts = [batch]
        for task in self.stream.experiences[: int(batch.task[0])]:
            rows = torch.randint(len(task.train.y), (len(batch),), generator=self.generator)
            old = task.samples(rows, self.generator)
            parts.append(old.map(lambda t: t.to(batch.x.device)))
        return base(model, joined(parts))

    def state_dict(self) -> dict[str, Any]:
        return {"generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.generator.set_state(state["generator"])
