"""Large networks a block of coordinates at a time, so that a block's states stay in the cache."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from attractor.optimisers.rule import Rule, State, map_tensors

BLOCK = 4096
"""Coordinates that a recurrent rule updates at once."""
NUMBERS = 80 * BLOCK
"""Numbers of a state that are updated at once, so that they stay in the cache."""


def blocks(rule: Rule, total: int, size: int = BLOCK) -> Iterator[slice]:
    """The pieces in which a rule may see `total` coordinates: all at once if it must."""
    size = max(total, 1) if rule.whole else size
    return (slice(start, min(start + size, total)) for start in range(0, total, size))


def block_size(state: State) -> int:
    """How many coordinates to update at once: many of a rule that remembers little of each."""
    each: int = sum(s.shape[0] * math.prod(s.shape[2:]) for s in pytree.tree_leaves(state.each))
    return max(NUMBERS // max(each, 1), 1)


@torch.no_grad()
def advance(
    rule: Rule,
    grads: Tensor,
    state: State,
    params: Tensor,
    *,
    context: Tensor | None = None,
    first: int = 0,
) -> Tensor:
    """The steps of a rule, block by block; the state is changed in place.

    Args:
        rule: the learned rule.
        grads: gradients of these coordinates.
        state: theirs.
        params: their values.
        context: what the learners were shown.
        first: which of the network's coordinates is the first of these.

    Shape:
        grads, params and the steps ``(learners, coordinates)``.
    """
    steps = torch.empty_like(params)
    after, seen = state, rule.look(context, state)
    for some in blocks(rule, params.shape[1], block_size(state)):
        before = state.at(some)
        steps[:, some], after = rule.update(
            grads[:, some],
            before,
            params[:, some],
            context=seen,
            where=slice(first + some.start, first + some.stop),
        )
        map_tensors(Tensor.copy_, before.each, after.each)
    # every block starts from the same shared state and ends with the same
    map_tensors(Tensor.copy_, state.shared, after.shared)
    return steps
