"""Progressive networks."""

from typing import Any

from torch import Generator, nn
from torch.optim import Optimizer

from attractor.continual.columns import Columns
from attractor.continual.strategies.base import Strategy
from attractor.errors import InputError
from attractor.tasks import StoredTask
from attractor.tasks.streams import Stream


class Progressive(Strategy):
    r"""Progressive networks: a new column for each task, which reads the frozen ones before it.

    .. math::
        h^{(k)}_l = f\Big(W^{(k)}_l h^{(k)}_{l-1} + \sum_{j<k} U^{(k:j)}_l h^{(j)}_{l-1}\Big)

    Nothing is forgotten; the weights grow with the square of the number of tasks. Any network will
    do: the linear layers of its columns are joined, but for those that read the input itself; of a
    recurrent network, that is the readout.

    Example:
        >>> Progressive().reference
        'rusu2016progressive'

    Departs from the paper: connections are linear (its equation 1), without adapters; they start at
    zero, so that a new column begins as a network of its own. The task has to be told.

    References:
        Rusu et al. (2016), Progressive neural networks, arXiv:1606.04671, equation 1.
    """

    reference = "rusu2016progressive"
    wraps_model = True

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        if not stream.identity:
            raise InputError(
                "Progressive expects to be told the task of each sample, in the test too, but the "
                f"stream {stream.name!r} does not tell. Try dataclasses.replace(stream, "
                "identity=True), or another strategy."
            )
        device = next(model.parameters()).device
        shown = stream[0].first("test", 2).to(device)
        self.model = Columns(model, shown, len(stream), generator=generator).to(device)
        self._generator, self.task = generator, 0
        return self.model

    def extend(self, stream: Stream) -> None:
        self.model.add(self._generator)

    def start_task(
        self, model: nn.Module, task: StoredTask, optimiser: Optimizer, updates: int
    ) -> None:
        self._learn(task.place)

    def _learn(self, task: int) -> None:
        self.task = task
        self.model.learn(task)
        for parameter in self.model.parameters():
            if not parameter.requires_grad:
                parameter.grad = None

    def state_dict(self) -> dict[str, Any]:
        return {"task": self.task, "generator": self._generator.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._learn(state["task"])
        self._generator.set_state(state["generator"])
