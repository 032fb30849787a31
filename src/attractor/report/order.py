"""The order in which a page has the variants of an experiment."""

import re
from collections.abc import Sequence

from attractor.report.configured import place
from attractor.runs.read import Run


def ordered(runs: Sequence[Run]) -> list[Run]:
    """Runs as the file of their experiment has its variants; others by label, 2 before 10."""
    return sorted(runs, key=lambda run: (place(run), natural(run.label), run.seed))


def natural(label: str) -> tuple[str | float, ...]:
    """What a label sorts by: its numbers as numbers.

    Example:
        >>> sorted(["rate 10", "rate 2", "Rate 0.5"], key=natural)
        ['Rate 0.5', 'rate 2', 'rate 10']
    """
    parts = re.split(r"(\d+(?:\.\d+)?)", label.casefold())
    return tuple(float(part) if place % 2 else part for place, part in enumerate(parts))
