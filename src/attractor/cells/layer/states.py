"""The state of a stack of cells: where it starts, and the form in which a caller sees it."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from attractor.cells.base import Cell, autocasts, map_state, refill
from attractor.errors import InputError


class LearnedState(nn.Module):
    """An initial state that is learned, the same for all sequences.

    It begins as the cell's own. What the cell names as ``fixed_state``, such as counts of steps,
    is not learned.

    Args:
        cell: whose state it is.

    Example:
        >>> from attractor.cells import LSTMCell
        >>> cell = LSTMCell(3, 8)
        >>> start = LearnedState(cell)
        >>> [name for name, _ in start.named_parameters()], start(cell, 5).h.shape
        (['h', 'c'], torch.Size([5, 8]))
    """

    def __init__(self, cell: Cell[Any, Any]) -> None:
        super().__init__()
        start = cell.initial_state(1)
        fixed = cell.fixed_state
        self.names = [name if name not in fixed else "" for name in cell.state_names()]
        for name, leaf in zip(self.names, pytree.tree_leaves(start), strict=True):
            if name:
                self.register_parameter(name, nn.Parameter(leaf[0].clone()))

    def forward(self, cell: Cell[Any, Any], batch_size: int) -> Any:
        """The state of so many sequences before their first step."""
        start = cell.initial_state(batch_size)
        leaves = pytree.tree_leaves(start)
        for index, name in enumerate(self.names):
            if name:
                leaves[index] = getattr(self, name).expand_as(leaves[index])
        return refill(start, leaves)


def gather(states: Sequence[Any], groups: Sequence[int] | None, dim: int) -> Any:
    """The states of all cells as a caller sees them.

    Without `groups` they are stacked along `dim`; otherwise there is one stack for each layer, of
    as many cells as `groups` says.

    Example:
        >>> states = [torch.zeros(2, 8), torch.zeros(2, 8), torch.zeros(2, 5)]
        >>> [stack.shape for stack in gather(states, [2, 1], 0)]
        [torch.Size([2, 2, 8]), torch.Size([1, 2, 5])]
    """
    if groups is None:
        return map_state(lambda *s: torch.stack(s, dim), *states)
    rest = iter(states)
    return tuple(gather([next(rest) for _ in range(size)], None, dim) for size in groups)


def scatter(
    owner: nn.Module,
    default: Sequence[Any],
    hx: Any,
    groups: Sequence[int] | None,
    *,
    batched: bool,
) -> list[Any]:
    """The state of each cell, from what a caller gives; the inverse of `gather`.

    Args:
        owner: whom messages name.
        default: the state from which each cell would start by itself.
        hx: what the caller gives, by the tensors that it has.
        groups: as in `gather`.
        batched: whether it has a dimension for sequences.
    """
    starts = _grouped(list(default), groups)
    leaves = [pytree.tree_leaves(group[0]) for group in starts]
    expected = [
        (len(group), *(leaf.shape if batched else leaf.shape[1:]))
        for group, parts in zip(starts, leaves, strict=True)
        for leaf in parts
    ]
    given = pytree.tree_leaves(hx)
    _check_shapes(owner, expected, given, batched)
    _check_types(owner, [leaf.dtype for parts in leaves for leaf in parts], given)
    rest = iter(given if batched else [leaf[:, None] for leaf in given])
    states = []
    for group, parts in zip(starts, leaves, strict=True):
        own = [next(rest) for _ in parts]
        states += [refill(one, [leaf[index] for leaf in own]) for index, one in enumerate(group)]
    return states


def _grouped(states: list[Any], groups: Sequence[int] | None) -> list[list[Any]]:
    if groups is None:
        return [states]
    rest = iter(states)
    return [[next(rest) for _ in range(size)] for size in groups]


def _check_shapes(
    owner: nn.Module, expected: list[tuple[int, ...]], given: list[Any], batched: bool
) -> None:
    got = [tuple(leaf.shape) if isinstance(leaf, Tensor) else leaf for leaf in given]
    if got == expected:
        return
    advice = "Try the state that the layer returned for a batch of the same size"
    if batched and [s[:1] + s[2:] for s in got] == [s[:1] + s[2:] for s in expected]:
        first = bool(getattr(owner, "batch_first", False))
        order = "(batch, time, features)" if first else "(time, batch, features)"
        advice += (
            f"; x is read as {order}, so if time and batch are swapped, batch_first={not first}"
        )
    batch = expected[0][1] if batched else 1
    raise InputError(
        f"{type(owner).__name__} expects an initial state of shape "
        f"{' and '.join(map(str, expected))} for {batch} sequences, but got "
        f"{' and '.join(map(str, got))}. {advice}."
    )


def _check_types(owner: nn.Module, types: list[torch.dtype], given: list[Tensor]) -> None:
    found = [leaf.dtype for leaf in given]
    if found != types and not autocasts(given[0].device.type):
        raise InputError(
            f"{type(owner).__name__} expects an initial state of "
            f"{' and '.join(map(str, types))}, but got {' and '.join(map(str, found))}. "
            f"Try state.to({types[0]})."
        )
