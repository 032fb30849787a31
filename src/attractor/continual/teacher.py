"""The network as it was after the last task, which the present one is held against."""

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from attractor.continual.growing import as_saved
from attractor.continual.readouts import readout
from attractor.state import cloned
from attractor.tasks import Batch
from attractor.tasks.answers import answer


class Teacher:
    """A frozen copy of a network.

    Example:
        >>> teacher = Teacher()
        >>> teacher.knows
        False
        >>> teacher.copy(nn.Linear(2, 3))
        >>> teacher.says(Batch(torch.ones(4, 2), torch.zeros(4))).shape
        torch.Size([4, 3])
    """

    def __init__(self) -> None:
        self.model: nn.Module | None = None

    @property
    def knows(self) -> bool:
        """Whether there was a task before."""
        return self.model is not None

    def copy(self, model: nn.Module) -> None:
        """Be as a network is now."""
        self.model = _frozen(model)

    @torch.no_grad()
    def says(self, batch: Batch) -> Tensor:
        """Its answers to some samples."""
        assert self.model is not None
        return answer(self.model, batch)

    def state_dict(self) -> dict[str, Any] | None:
        return None if self.model is None else cloned(dict(self.model.state_dict()))

    def load_state_dict(self, state: dict[str, Any] | None, like: nn.Module) -> None:
        """Go on as another one was; `like` is a network of its kind, with any answers."""
        self.model = None if state is None else _frozen(like)
        if self.model is not None and state is not None:
            if len(state) == len(like.state_dict()):
                _resize(self.model, state)
            self.model = _frozen(as_saved(self.model, state))  # it may have grown at a task before
            self.model.load_state_dict(state)


def _resize(model: nn.Module, state: dict[str, Any]) -> None:
    """Give a network as many answers as that of a state has."""
    name, layer = readout(model)
    layer.out_features = len(state[f"{name}.weight"])
    for own in (*layer.parameters(), *layer.buffers()):
        own.data = own.new_empty(layer.out_features, *own.shape[1:])


def _frozen(model: nn.Module) -> nn.Module:
    return deepcopy(model).requires_grad_(False).eval()
