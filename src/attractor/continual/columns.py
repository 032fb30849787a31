"""A network for each task, each reading the layers of those before it."""

from copy import deepcopy
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from attractor.tasks import Batch
from attractor.tasks.answers import tell

Reads = dict[tuple[int, str], Tensor]
"""What each layer of each column read."""


class Columns(nn.Module):
    r"""Columns of a progressive network: one for each task, frozen when its task is over.

    .. math::
        h^{(k)}_l = f\Big(W^{(k)}_l h^{(k)}_{l-1} + \sum_{j<k} U^{(k:j)}_l h^{(j)}_{l-1}\Big)

    for every linear layer l that does not read the input itself.

    Args:
        model: the first column; the others have the same layers, and weights of the same
            distribution: each tensor of theirs is a shuffle of the initial one.
        shown: some samples, which tell the layers that read the input.
        count: how many columns.
        generator: shuffles the weights.

    Shape:
        x as the model takes it, task ``(batch,)``; what the column of each sample's task says.

    Example:
        >>> from attractor.models import MLP
        >>> shown = Batch(torch.randn(2, 4), torch.zeros(2))
        >>> model = Columns(MLP([4, 5, 3]), shown, 2, generator=torch.Generator().manual_seed(0))
        >>> model(torch.randn(6, 4), torch.tensor([0, 1, 0, 1, 1, 1])).shape
        torch.Size([6, 3])
        >>> [name for name, _ in model.laterals[1].named_parameters()]
        ['layers/1.0']
    """

    needs_task = True

    def __init__(self, model: nn.Module, shown: Batch, count: int, *, generator: Generator) -> None:
        super().__init__()
        self.joined = _joined_layers(model, shown)
        self._first = (deepcopy(model),)  # in a tuple, since it is no part of the network
        self.columns = nn.ModuleList([model])
        self.laterals = nn.ModuleList([nn.ModuleDict()])
        self._reads: Reads = {}
        self._listen(0)
        for _ in range(1, count):
            self.add(generator)

    def add(self, generator: Generator) -> None:
        """One column more."""
        place, column = len(self.columns), deepcopy(self._first[0]).requires_grad_(True)
        with torch.no_grad():
            for weight in column.parameters():
                order = torch.randperm(weight.numel(), generator=generator).to(weight.device)
                weight.copy_(weight.flatten()[order].view_as(weight))
        self.columns.append(column)
        self.laterals.append(nn.ModuleDict())
        for name in self.joined:
            layer: Any = column.get_submodule(name)
            zeros = [torch.zeros_like(layer.weight) for _ in range(place)]
            of_layer: Any = self.laterals[place]
            of_layer[_key(name)] = nn.ParameterList(zeros)
        self._listen(place)

    def _listen(self, place: int) -> None:
        """Let a column note what its layers read, and hear the columns before it."""
        for name in self.joined:
            layer = self.columns[place].get_submodule(name)
            layer.register_forward_hook(partial(self._hear, place, name))

    def _hear(
        self, place: int, name: str, layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor
    ) -> Tensor:
        self._reads[place, name] = inputs[0]
        if place:
            of_layer: Any = self.laterals[place]
            for earlier, U in enumerate(of_layer[_key(name)]):
                output = output + F.linear(self._reads[earlier, name], U)
        return output

    def forward(self, x: Any, task: Tensor) -> Tensor:
        """What the column of each sample's task says."""
        among: list[int] = torch.unique(task).tolist()
        answers: Tensor | None = None
        for place in range(among[-1] + 1):
            said = tell(self.columns[place], x, task)
            if isinstance(said, PackedSequence):
                said = pad_packed_sequence(said, batch_first=True)[0]
            if place in among:
                own = (task == place).view(-1, *[1] * (said.ndim - 1))
                answers = said if answers is None else torch.where(own, said, answers)
        self._reads.clear()
        assert answers is not None
        return answers

    def learn(self, task: int) -> None:
        """Freeze all but the column of a task and what it hears."""
        for place in range(len(self.columns)):
            for part in (self.columns[place], self.laterals[place]):
                part.requires_grad_(place == task)


def _key(name: str) -> str:
    return name.replace(".", "/")


def _joined_layers(model: nn.Module, shown: Batch) -> list[str]:
    """The linear layers that do not read the input itself."""
    names, x = [], shown.x.flatten(1)

    def note(name: str, layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        read = inputs[0].flatten(1)
        if name not in names and not (read.shape == x.shape and torch.equal(read, x)):
            names.append(name)

    hooks = [
        layer.register_forward_pre_hook(partial(note, name))
        for name, layer in model.named_modules()
        if isinstance(layer, nn.Linear)
    ]
    with torch.no_grad():
        tell(model, shown.inputs, shown.task)
    for hook in hooks:
        hook.remove()
    return names
