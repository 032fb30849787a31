"""What a target costs: minutes of one core, from a few measured updates of each experiment."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from attractor.reproduction.outcomes import EXACT, stored
from attractor.reproduction.targets import TARGETS, Budget, Target

SECONDS = 6.0
"""What is computed takes seconds, two of them half a minute."""


@cache
def costs() -> dict[str, Any]:
    """By experiment, the seeds of its file and the minutes of one run, of some variants by name."""
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
    if not asked and stored(f"{target.slug}.{EXACT}"):
        return SECONDS / 60
    if not asked or not all(name in costs() for name in asked):
        return None
    each = (
        sum(run_minutes(name, label) for label in labels) * (count or costs()[name]["seeds"])
        for name, (count, labels) in asked.items()
    )
    return float(sum(each))


def run_minutes(experiment: str, label: str) -> float:
    """Estimated minutes of one core for a run of an experiment's variant."""
    cost = costs()[experiment]
    return float(cost.get("variants", {}).get(label, cost["minutes"]))
