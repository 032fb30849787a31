"""Timing that other programs on the machine disturb least: in turns, and the best of many."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch

Work = Callable[[], object]
TURNS = 3
"""As often is everything done at least."""


def best_of(works: Mapping[str, Work], seconds: float, turns: int = TURNS) -> dict[str, float]:
    """The least time of each work, measured in turns after one that does not count.

    With one thread it is the processor's time, which says least about what else runs; with more
    it is the time of the clock.

    Args:
        works: by name.
        seconds: after so long no new turn is begun.
        turns: at least so many are done.

    Example:
        >>> took = best_of({"short": lambda: sum(range(10)), "long": lambda: sum(range(10**5))}, 0)
        >>> took["short"] < took["long"]
        True
    """
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    for work in works.values():
        work()
    least = dict.fromkeys(works, float("inf"))
    end, done = time.perf_counter() + seconds, 0
    while done < turns or time.perf_counter() < end:
        for name, work in works.items():
            start = clock()
            work()
            least[name] = min(least[name], clock() - start)
        done += 1
    return least


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Let torch compute in so many threads for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def matmul_peak(size: int = 1024, seconds: float = 0.5) -> float:
    """Arithmetic operations per second of a large matrix product, in units of 10⁹."""
    a = torch.randn(size, size)
    took = best_of({"product": lambda: torch.mm(a, a)}, seconds)["product"]
    return 2e-9 * size**3 / took
