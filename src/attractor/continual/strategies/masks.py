"""Masks over the hidden units of a network, one set for each task."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor, nn

from attractor.errors import InputError
from attractor.models import HCN, MLP, MultiHead, ResMLP
from attractor.tasks.answers import tell


class Connection(NamedTuple):
    """One linear layer between masked units.

    Args:
        layer: its name in the model.
        reads: the mask of the units that it reads; ``None`` for the input.
        feeds: the masks of the units that depend on it; none for the output layer.
    """

    layer: str
    reads: int | None
    feeds: tuple[int, ...]


def wiring(model: nn.Module) -> list[Connection]:
    """How the layers of a network of `attractor.models` are joined.

    Past a highway or residual connection a unit goes on, unmasked, to all layers above, so whatever
    feeds it feeds them too.

    Example:
        >>> from attractor.models import MLP
        >>> wiring(MLP([4, 3, 3, 2]))[1]
        Connection(layer='layers.1', reads=0, feeds=(1,))
    """
    if isinstance(model, MultiHead):
        return [wire._replace(layer=f"body.{wire.layer}") for wire in wiring(model.body)]
    if isinstance(model, MLP):
        last = len(model.layers) - 1
        return [
            Connection(f"layers.{i}", i - 1 if i else None, (i,) if i < last else ())
            for i in range(last + 1)
        ]
    if isinstance(model, HCN | ResMLP):
        depth = len(model.layers)
        above = [tuple(range(i, depth + 1)) for i in range(depth + 1)]
        wires = [Connection("first", None, above[0])]
        wires += [Connection(f"layers.{i}", i, above[i + 1]) for i in range(depth)]
        if isinstance(model, HCN):
            wires += [Connection(f"gates.{i}", None, above[i + 1]) for i in range(depth)]
        return [*wires, Connection("last", depth, ())]
    raise InputError(
        f"expected an MLP, HCN or ResMLP, whose layers can be masked, but got "
        f"{type(model).__name__}. Say how its layers are joined with wires=[Connection(...), ...]."
    )


class Masked(nn.Module):
    r"""Any network, with its hidden units masked by what it has learnt for the task it is told.

    .. math::
        h_l \leftarrow a_l^t \odot h_l, \qquad a_l^t = \sigma(s\, e_l^t)

    Args:
        model: the network.
        tasks: how many tasks there will be.
        sharpness: :math:`s` in evaluation; in training it is ``self.s``.
        wires: how its layers are joined; ``None`` asks `wiring`.
        generator: draws the embeddings, from a normal distribution.

    Shape:
        x as the model takes it, task ``(batch,)``; y as the model gives it.

    Example:
        >>> from attractor.models import MLP
        >>> model = Masked(MLP([4, 3, 2]), 5, generator=torch.Generator().manual_seed(0))
        >>> model(torch.zeros(2, 4), torch.tensor([0, 3])).shape
        torch.Size([2, 2])
    """

    needs_task = True

    def __init__(
        self,
        model: nn.Module,
        tasks: int,
        *,
        sharpness: float = 400.0,
        wires: Sequence[Connection] | None = None,
        generator: Generator,
    ) -> None:
        super().__init__()
        self.model = model
        self.wires = list(wiring(model) if wires is None else wires)
        self.sharpness = self.s = sharpness
        self.readers = [
            [wire.layer for wire in self.wires if wire.reads == mask]
            for mask in range(1 + max(wire.reads or 0 for wire in self.wires))
        ]
        like = next(model.parameters())
        widths = [self.layer(names[0]).in_features for names in self.readers]
        self.embeddings = nn.ModuleList(
            nn.ParameterList(
                torch.randn(width, generator=generator).to(like.device, like.dtype)
                for width in widths
            )
            for _ in range(tasks)
        )

    def layer(self, name: str) -> nn.Linear:
        """A layer of the model by its name."""
        found: Any = self.model.get_submodule(name)
        return found  # type: ignore[no-any-return]

    def masks(self, task: int, s: float) -> list[Tensor]:
        """The masks of a task.

        Shape:
            one ``(units,)`` for each masked layer.
        """
        return [torch.sigmoid(s * e) for e in self.embedding(task)]

    def embedding(self, task: int) -> list[nn.Parameter]:
        """What the masks of a task are made of."""
        return list(self.embeddings[task].parameters())

    def forward(self, x: Any, task: Tensor) -> Any:
        s = self.s if self.training else self.sharpness
        first = int(task[0])
        if bool((task == first).all()):
            masks = self.masks(first, s)
        else:
            each = [self.masks(one, s) for one in range(len(self.embeddings))]
            masks = [torch.stack(rows)[task] for rows in zip(*each, strict=True)]
        hooks = [
            self.layer(name).register_forward_pre_hook(_Multiply(mask))
            for names, mask in zip(self.readers, masks, strict=True)
            for name in names
        ]
        try:
            return tell(self.model, x, task)
        finally:
            for hook in hooks:
                hook.remove()


class _Multiply:
    """A hook that masks what a layer reads."""

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def __call__(self, layer: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (inputs[0] * self.mask, *inputs[1:])
