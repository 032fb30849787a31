"""Large networks a block of coordinates at a time, so that a block's states stay in the cache."""

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor

from attractor.optimisers.rule import Rule
from attractor.optimisers.state import State, map_tensors
from attractor.optimisers.view import View

BLOCK = 4096
"""Coordinates that a recurrent rule updates at once."""
NUMBERS = 80 * BLOCK
"""Numbers of a state that are updated at once, so that they stay in the cache."""
STREAMED = 1 << 16
"""Coordinates that a rule updates at once which takes care of the cache itself."""


def blocks(rule: Rule, total: int, size: int = BLOCK) -> Iterator[slice]:
    """The pieces in which a rule may see `total` coordinates: all at once if it must."""
    size = max(total, 1) if rule.whole or rule.tensorwise else size
    return (slice(start, min(start + size, total)) for start in range(0, total, size))


def block_size(rule: Rule, state: State) -> int:
    """How many coordinates to update at once: many of a rule that remembers little of each."""
    if rule.streams:
        return STREAMED
    leaves = State(state.each).named().values()
    each: int = sum(s.shape[0] * math.prod(s.shape[2:]) for s in leaves)
    return max(NUMBERS // max(each, 1), 1)


class Draws:
    """Where torch's default generator was before each block of each update.

    With it, a rule that draws random numbers draws the same ones when it is run again.

    Example:
        >>> draws = Draws()
        >>> with draws.noted():
        ...     first = torch.rand(2)
        >>> draws.rewind(0)
        >>> draws.any, torch.equal(torch.rand(2), first)
        (True, True)
    """

    def __init__(self) -> None:
        self.states: list[Tensor] = []
        self.any = False

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note where the generator is, and whether what follows draws from it."""
        before = torch.get_rng_state()
        if self.states and torch.equal(before, self.states[-1]):
            before = self.states[-1]  # most rules draw nothing, and one copy is enough
        self.states.append(before)
        yield
        self.any = self.any or not torch.equal(before, torch.get_rng_state())

    def rewind(self, index: int) -> None:
        """Put the generator where it was before a block, counted over all updates."""
        torch.set_rng_state(self.states[index])


@torch.no_grad()
def advance(
    rule: Rule,
    grads: Tensor,
    state: State,
    params: Tensor,
    view: View,
    draws: Draws | None = None,
) -> Tensor:
    """The steps of a rule, block by block; the state is changed in place.

    Args:
        rule: the learned rule.
        grads: gradients of these coordinates.
        state: theirs.
        params: their values.
        view: of which tensors they are, and what the learners were shown.
        draws: is told of each block, if given.

    Shape:
        grads, params and the steps ``(learners, coordinates)``.
    """
    steps = torch.empty_like(params)
    seen = rule.look(view.context, state)
    after, view = state, view._replace(context=seen, overwrite=True)
    for some in blocks(rule, params.shape[1], block_size(rule, state)):
        before = state.at(some)
        with nullcontext() if draws is None else draws.noted():
            steps[:, some], after = rule.update(
                grads[:, some], before, params[:, some], view.at(some)
            )
        map_tensors(_renew, before.each, after.each)
    # every block starts from the same shared state and ends with the same
    map_tensors(_renew, state.shared, after.shared)
    return steps


def _renew(old: Tensor, new: Tensor) -> Tensor:
    there = new.data_ptr() == old.data_ptr() and new.stride() == old.stride()
    return old if there else old.copy_(new)
