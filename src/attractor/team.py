"""Processes that torchrun started together: each does its share of every step.

All of them hold the same weights and the same random numbers, and take the same steps. Without
torchrun there is one process, and nothing here does anything.
"""

import gc
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor
from torch import distributed as dist

from attractor.errors import InputError


class Team(NamedTuple):
    """Which of how many processes this is."""

    rank: int = 0
    size: int = 1


def team() -> Team:
    """The team of this process, of which it may be the only member.

    Example:
        >>> team()
        Team(rank=0, size=1)
    """
    if dist.is_available() and dist.is_initialized():
        return Team(dist.get_rank(), dist.get_world_size())
    return Team()


def started_together() -> bool:
    """Whether torchrun started this process beside others."""
    return "TORCHELASTIC_RUN_ID" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1


def refuse_together(command: str) -> None:
    """Refuse a command that processes cannot share: each would do all of it, beside the others."""
    if started_together():
        raise InputError(
            f"expected `{command}` to be started once, but torchrun started "
            f"{os.environ['WORLD_SIZE']} of it. Leave torchrun out; `attractor run` is the one "
            "command that processes share."
        )


@contextmanager
def joined() -> Iterator[Team]:
    """The team of the processes that torchrun started; the only member where it did not."""
    if not started_together():
        yield Team()
        return
    dist.init_process_group("gloo")
    try:
        yield team()
    finally:
        gc.collect()  # gloo aborts at times if tensors that it has seen outlive it
        dist.destroy_process_group()


def share(count: int) -> slice:
    """The rows of `count` that are this process's, which differ in number by one at most.

    Example:
        >>> share(5)
        slice(0, 5, None)
    """
    rank, size = team()
    return slice(count * rank // size, count * (rank + 1) // size)


def summed(tensors: Iterable[Tensor]) -> None:
    """Replace tensors by their sum over the team, in one message."""
    if team().size == 1:
        return
    given = list(tensors)
    together = torch.cat([one.detach().flatten() for one in given])
    dist.all_reduce(together)
    start = 0
    for one in given:
        part = together[start : start + one.numel()]
        one.detach().copy_(part.view_as(one))
        start += one.numel()


def gathered(part: Tensor, count: int) -> Tensor:
    """All `count` rows, of which each process has its `share`."""
    if team().size == 1:
        return part
    whole = part.new_zeros(count, *part.shape[1:])
    whole[share(count)] = part
    dist.all_reduce(whole)
    return whole


def alike(tensors: Iterable[Tensor]) -> bool:
    """Whether tensors have the same numbers in all processes of the team."""
    given = [one.detach().flatten().double() for one in tensors]
    if team().size == 1 or not given:
        return True
    least = torch.cat(given)
    most = least.clone()
    dist.all_reduce(least, dist.ReduceOp.MIN)
    dist.all_reduce(most, dist.ReduceOp.MAX)
    return torch.equal(least, most)


def agreed(*wishes: bool) -> tuple[bool, ...]:
    """What the first process of the team wishes."""
    if team().size == 1:
        return wishes
    told = torch.tensor(wishes, dtype=torch.uint8)
    dist.broadcast(told, 0)
    return tuple(map(bool, told.tolist()))


@contextmanager
def unmoved() -> Iterator[None]:
    """Refuse what draws from torch's own generator, which must stay alike in all processes."""
    before = torch.get_rng_state()
    yield
    if not torch.equal(before, torch.get_rng_state()):
        raise InputError(
            "expected learners that draw no random numbers, so that a team can share them, but "
            "theirs do. Leave dropout and the like out, or use one process."
        )
