"""Large networks a block of coordinates at a time, so that a block's states stay in the cache."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from attractor.optimisers.rule import Rule, State

BLOCK = 8192
"""Coordinates that are updated at once."""


def blocks(rule: Rule, total: int, size: int = BLOCK) -> Iterator[slice]:
    """The pieces in which a rule may see `total` coordinates: all at once if it must."""
    size = max(total, 1) if rule.whole else size
    return (slice(start, min(start + size, total)) for start in range(0, total, size))


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
    after = state
    for some in blocks(rule, params.shape[1]):
        steps[:, some], after = rule.update(
            grads[:, some],
            state.at(some),
            params[:, some],
            context=context,
            where=slice(first + some.start, first + some.stop),
        )
        pytree.tree_map(lambda s, a, at=some: s[:, at].copy_(a), state.each, after.each)
    # every block starts from the same shared state and ends with the same
    pytree.tree_map(lambda s, a: s.copy_(a), state.shared, after.shared)
    return steps
