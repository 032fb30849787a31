"""Learn all of a network from the first tasks, then only a part of it."""

from collections.abc import Sequence
from typing import Any

from torch import Generator, nn

from attractor.checks import whole
from attractor.continual.strategies.base import Strategy
from attractor.continual.strategies.masks import Masked
from attractor.errors import InputError
from attractor.tasks import StoredTask
from attractor.tasks.streams import Stream


class Freeze(Strategy):
    r"""Freeze all but some layers after the first task; with an HCN it is the split-HCN.

    .. math::
        \theta_{kept} \leftarrow \theta_{kept} - \alpha \nabla L_V, \qquad
        \theta_{rest} \text{ as the first task left it}

    Args:
        keep: beginnings of the names of the parameters that go on learning; ``None`` means the
            layer that comes first in the model.
        after: how many tasks all parameters learn from.

    Example:
        >>> from attractor.continual import GEM, combine
        >>> split_hcn = combine(GEM(), Freeze())

    Departs from the paper: the thesis names the gate and the second layer as frozen and leaves the
    output layer open; here it is frozen too, since only layer 1 is said to be trained.

    References:
        Kuo (2021), thesis, section 6.2.5, table 6.6.
    """

    reference = "kuo2021plastic"

    def __init__(self, keep: Sequence[str] | None = None, *, after: int = 1) -> None:
        self.keep, self.after = keep, whole("after", after, 1)

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        # the network itself, not the masks over it
        self.model, self.frozen = model.model if isinstance(model, Masked) else model, False
        names = [name for name, _ in self.model.named_parameters()]
        keep = self.keep if self.keep is not None else [names[0].rpartition(".")[0]]
        self.rest = [name for name in names if not name.startswith(tuple(keep))]
        if len(self.rest) == len(names):
            raise InputError(
                f"expected the beginning of a parameter's name ({', '.join(names)}), but got "
                f"{', '.join(keep)}. Try {names[0].rpartition('.')[0]!r}."
            )
        return model

    def adopt(self, model: nn.Module) -> None:
        self.model = model
        if self.frozen:
            self._freeze()

    def end_task(self, model: nn.Module, task: StoredTask) -> None:
        if task.place + 1 == self.after:
            self._freeze()

    def _freeze(self) -> None:
        self.frozen = True
        for name in self.rest:
            parameter = self.model.get_parameter(name)
            parameter.requires_grad_(False)
            parameter.grad = None

    def state_dict(self) -> dict[str, Any]:
        return {"frozen": self.frozen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state["frozen"]:
            self._freeze()
