"""What a target costs: minutes of one core, from a few measured updates of each experiment."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from attractor.reproduction.outcomes import WITHOUT_RUNS, stored
from attractor.reproduction.targets import TARGETS, Budget, Target

SECONDS = 6.0
"""What is computed takes seconds, two of them half a minute."""


@cache
def costs() -> dict[str, Any]:
    """By experiment, the minutes of one run and the number of seeds of its file."""
    text = Path(__file__).with_name("costs.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def minutes(target: Target, budget: Budget) -> float | None:
    """Estimated minutes of one core for all runs of a target; ``None`` if that is not known.

    Those that it is derived from count too, each run once.

    Example:
        >>> from attractor.reproduction.targets import target
        >>> 1 < minutes(target("table-6.1"), "quick") < minutes(target("table-6.1"), "full")
        True
    """
    asked: dict[str, tuple[int, set[str]]] = {}
    for one in (target, *(TARGETS[key] for key in target.derived)):
        for name, (seeds, labels) in one.experiments(budget).items():
            count, known = asked.get(name, (0, set()))
            asked[name] = (max(count, len(seeds)), known | {*labels})
    if not asked and any(one.experiment in WITHOUT_RUNS for one in stored(target.slug).rows):
        return SECONDS / 60
    if not asked or not all(name in costs() for name in asked):
        return None
    each = (
        costs()[name]["minutes"] * len(labels) * (count or costs()[name]["seeds"])
        for name, (count, labels) in asked.items()
    )
    return float(sum(each))
