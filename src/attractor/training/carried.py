"""A state that is carried from batch to batch: truncated backpropagation through time."""

from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from attractor.state import Nested
from attractor.tasks import Batch


class Carried(nn.Module):
    """A model whose state goes on from one call to the next, cut off from the graph of the last.

    The state belongs to whoever made this, a training process or an evaluation, never to the model.

    Args:
        model: takes ``(x, state)`` and gives ``(output, state)``; says so by ``carries_state``, and
            gives the state before the first batch by ``initial_state(batch_size)``. One whose
            ``carry`` is False begins anew with each batch.

    Example:
        >>> class Counter(nn.Module):
        ...     carries_state = True
        ...
        ...     def initial_state(self, batch_size: int) -> torch.Tensor:
        ...         return torch.zeros(batch_size)
        ...
        ...     def forward(self, x, state):
        ...         state = state + x.sum(1)
        ...         return state, state
        >>> model = Carried(Counter())
        >>> model(torch.ones(1, 2)), model(torch.ones(1, 3))
        (tensor([2.]), tensor([5.]))
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.state: Any = None

    def forward(self, x: Any) -> Any:
        model: Any = self.model
        before = model.initial_state(_samples(x)) if self.state is None else self.state
        output, after = model(x, before)
        self.state = tree_map(torch.Tensor.detach, after) if getattr(model, "carry", True) else None
        return output

    def reset(self) -> None:
        """Forget: the next batch begins new sequences."""
        self.state = None

    def leaves(self) -> Nested:
        """The tensors of the state, for a checkpoint."""
        return None if self.state is None else tree_flatten(self.state)[0]

    def take_up(self, leaves: Nested) -> None:
        """Go on with the tensors that `leaves` gave."""
        if leaves is None:
            return self.reset()
        model: Any = self.model
        _, form = tree_flatten(model.initial_state(1))
        self.state = tree_unflatten(leaves, form)
        return None


def begin(reader: nn.Module, batch: Batch) -> None:
    """Let a reader forget what it carries, unless the batch goes on where the last one ended."""
    if isinstance(reader, Carried) and not batch.continues:
        reader.reset()


def seen_by(model: nn.Module) -> nn.Module:
    """The model as a task calls it: one that ``carries_state`` goes on from batch to batch."""
    return Carried(model) if getattr(type(model), "carries_state", False) else model


def _samples(x: Any) -> int:
    """How many samples are shown: in a tensor, in a tuple of them, or packed."""
    if isinstance(x, PackedSequence):
        return int(x.batch_sizes[0])
    return len(x[0]) if isinstance(x, tuple) else len(x)
