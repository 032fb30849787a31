"""Several tensors of a network as one row, for a rule that must see whole tensors."""

from collections.abc import Sequence

import torch
from torch import Tensor

from attractor.optimisers.state import State, map_tensors


def gathered(states: Sequence[State]) -> State:
    """The states of several tensors as that of their coordinates one after the other.

    Example:
        >>> both = gathered([State(torch.zeros(1, 2), torch.zeros(1, 1)),
        ...                  State(torch.zeros(1, 3), torch.ones(1, 1))])
        >>> both.each.shape, both.shared
        (torch.Size([1, 5]), tensor([[0., 1.]]))
    """
    first, *others = states
    return first.map(lambda *parts: torch.cat(parts, 1), *others) if others else first


def scattered(whole: State, states: Sequence[State]) -> None:
    """Write what `gathered` put together back to where it came from.

    Example:
        >>> states = [State(torch.zeros(1, 1)), State(torch.zeros(1, 2))]
        >>> scattered(State(torch.arange(3.0)[None]), states)
        >>> states[1].each
        tensor([[1., 2.]])
    """
    if len(states) == 1:
        return

    def write(full: Tensor, *parts: Tensor) -> Tensor:
        pieces = full.split_with_sizes([part.shape[1] for part in parts], dim=1)
        torch._foreach_copy_(list(parts), list(pieces))
        return full

    map_tensors(write, tuple(whole), *map(tuple, states))
