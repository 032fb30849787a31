"""Every case of a benchmark, one after another or side by side, until all are done."""

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from attractor.errors import RunError
from attractor.runs.jobs import Do, Ended, do_all
from attractor.training import Stopped

C = TypeVar("C")

OnCase = Callable[[int, int, str], None]
"""Told, after each case, how many are done, how many there are, and which it was."""


def drive(cases: Sequence[C], do: Do[C], *, done: int, jobs: int, on_case: OnCase) -> list[str]:
    """Do what is left of a benchmark.

    Cases are done in an order of chance, so that the time left is what the time gone says.

    Args:
        cases: those that are left.
        do: does one of them, and keeps what it found.
        done: how many were done before.
        jobs: processes.
        on_case: is told how far it is.

    Returns:
        Why cases were refused, each reason once.

    Raises:
        Stopped: if it was asked to stop before the end.
        RunError: if a case failed, after all others were done.
    """
    order = random.Random(0).sample(cases, len(cases))  # noqa: S311 - no secret
    total = done + len(cases)

    def note(ended: Ended[C]) -> None:
        nonlocal done
        done += 1
        on_case(done, total, str(ended.config))

    on_case(done, total, "")
    ended = do_all(order, do, name=str, jobs=jobs, on_end=note)
    if any(one.how == "stopped" for one in ended):
        raise Stopped
    if failed := [one.message for one in ended if one.how == "failed"]:
        raise RunError(failed[0])
    return list(dict.fromkeys(one.message for one in ended if one.how == "refused"))
