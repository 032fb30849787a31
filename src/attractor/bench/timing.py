"""Timing that other programs on the machine disturb least: in turns, and the best of many."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

import torch

Work = Callable[[], object]
TURNS = 2
"""As often is everything that is judged done at least."""


def best_of(
    works: Mapping[str, Work], seconds: float, turns: int = TURNS, spared: Collection[str] = ()
) -> dict[str, float]:
    """The least time of each work, all of them done in turns.

    With one thread it is the processor's time, which says least about what else runs; with more
    it is the time of the clock.

    Args:
        works: by name.
        seconds: no turn is begun that would end later.
        turns: at least so many are done, however long they take.
        spared: those that are done once, and again only while there is time.

    Example:
        >>> took = best_of({"short": lambda: sum(range(10)), "long": lambda: sum(range(10**5))}, 0)
        >>> took["short"] < took["long"]
        True
    """
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    least = dict.fromkeys(works, float("inf"))
    last = dict[str, float]()
    end, done = time.perf_counter() + seconds, 0
    while chosen := _fitting(works, last, end - time.perf_counter(), done < turns, spared):
        for name in chosen:
            began, start = time.perf_counter(), clock()
            works[name]()
            least[name] = min(least[name], clock() - start)
            last[name] = time.perf_counter() - began
        done += 1
    return least


def _fitting(
    works: Collection[str],
    last: Mapping[str, float],
    left: float,
    must: bool,
    spared: Collection[str],
) -> list[str]:
    """Whose turn it is in the time that is left, if each takes as long as it did last."""
    if not last:
        return list(works)
    judged = [name for name in works if name not in spared]
    left -= sum(last[name] for name in judged)
    if left < 0 and not must:
        return []
    chosen = {*judged}
    for name in spared:
        if last[name] <= left:
            left -= last[name]
            chosen.add(name)
    return [name for name in works if name in chosen]


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
