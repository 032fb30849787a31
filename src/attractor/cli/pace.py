"""How long runs still take, told from how far each has come since it was first seen."""

import time
from collections.abc import Mapping

from attractor.results.numbers import duration


class Pace:
    """How far runs have come, each in parts of its own length.

    Runs that were done before the first one was seen at work say nothing about the others.
    """

    def __init__(self) -> None:
        self.since: float | None = None
        """When the first run was seen at work."""
        self.first: dict[str, tuple[float, float]] = {}
        """By run, how far it was when it was first seen, and when that was."""
        self.base: dict[str, float] = {}
        """By run, how far it was when the time of all began, or when it was taken up."""
        self.now: dict[str, float] = {}
        self.ended: set[str] = set()

    def see(self, key: str, part: float | None, *, new: bool = False) -> None:
        """Take note of how far a run has come.

        Args:
            key: of the run.
            part: of its length; ``None`` where only its data can tell.
            new: it began after the first run was seen, though it may be far by now.
        """
        if key in self.ended:
            return
        if self.since is None:
            self.since = time.monotonic()
        if part is not None:
            self.first.setdefault(key, (part, time.monotonic()))
            self.base.setdefault(key, 0.0 if new else part)
            self.now[key] = part

    def end(self, key: str, *, whole: bool) -> None:
        """Take note that a run ended; one that failed did no more than was seen of it."""
        self.ended.add(key)
        if whole and self.since is not None:
            self.base.setdefault(key, 0.0)
            self.now[key] = 1.0

    @property
    def going(self) -> Mapping[str, float]:
        """How far those have come that have not ended."""
        return {key: part for key, part in list(self.now.items()) if key not in self.ended}

    def left_of(self, key: str) -> float | None:
        """Seconds that one run still takes, if it goes on as it did."""
        if key not in self.first:
            return None
        part, since = self.first[key]
        now = self.now[key]
        return rest(now - part, 1 - now, time.monotonic() - since)

    def left(self, runs: int) -> float | None:
        """Seconds that all still take, `runs` of which have not ended: no less than the slowest."""
        if self.since is None:
            return None
        done = sum(part - self.base[key] for key, part in list(self.now.items()))
        open_ = runs - sum(self.going.values())
        whole = rest(done, open_, time.monotonic() - self.since)
        each = [whole, *map(self.left_of, self.going)]
        return None if whole is None else max(one for one in each if one is not None)


def time_left(seconds: float | None) -> str:
    """How long the rest will take, at the end of a line; nothing where none can tell.

    Example:
        >>> time_left(60.0)
        ', about 1 min 00 s left'
    """
    return "" if seconds is None else f", about {duration(seconds)} left"


def rest(done: float, left: float, seconds: float) -> float | None:
    """Seconds that the rest takes if it goes on as it did; nothing where none can tell.

    Example:
        >>> rest(100, 300, 20.0)
        60.0
    """
    return seconds * left / done if done > 0 and left > 0 else None
