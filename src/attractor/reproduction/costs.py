"""What a target costs: minutes of one core, from a few measured updates of each experiment."""

import tomllib
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from attractor.experiments.table import load
from attractor.reproduction.outcomes import END, EXACT, stored
from attractor.reproduction.targets import TARGETS, Budget, Target

SECONDS = 6.0
"""What is computed takes seconds, two of them half a minute."""


@cache
def measured() -> dict[str, Any]:
    """By experiment, the seeds of its file and the minutes of one run, of some variants by name.

    Where there are no minutes but those of variants, others were not measured.
    """
    text = Path(__file__).with_name("costs.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def costs() -> dict[str, Any]:
    """Those of which the minutes of every variant are known."""
    return {name: one for name, one in measured().items() if "minutes" in one}


class Cost(NamedTuple):
    """Estimated minutes of one core; with ``least``, some of the runs are not counted."""

    minutes: float
    least: bool = False


def cost(target: Target, budget: Budget) -> Cost | None:
    """What all runs of a target take; ``None`` if that is not known of any.

    Those that it is derived from count too, each run once.

    Example:
        >>> from attractor.reproduction.targets import target
        >>> cost(target("table-2.1"), "full")
        Cost(minutes=0.1, least=False)
    """
    asked: dict[str, tuple[int, set[str]]] = {}
    for one in (target, *(TARGETS[key] for key in target.derived)):
        for name, (seeds, labels) in one.experiments(budget).items():
            count, known = asked.get(name, (0, set()))
            asked[name] = (max(count, len(seeds)), known | {*labels})
    if not asked and stored(f"{target.slug}.{EXACT}"):
        return Cost(SECONDS / 60)
    each = {
        (name, label): (count or seeds_of(name), run_minutes(name, label))
        for name, (count, labels) in asked.items()
        for label in labels
    }
    known_runs = [(seeds, run) for seeds, run in each.values() if run is not None]
    if not known_runs:
        return None
    return Cost(sum(seeds * run for seeds, run in known_runs), len(known_runs) < len(each))


def told(found: Cost | None) -> str:
    """A cost in words.

    Example:
        >>> told(Cost(120.3, least=True))
        '≥ 120'
    """
    if found is None:
        return "-"
    number = f"{found.minutes:,.0f}" if found.minutes >= 9.95 else f"{found.minutes:.1f}"
    return f"≥ {number}" if found.least else number


def seeds_of(experiment: str) -> int:
    """How many seeds the file of an experiment has."""
    known = measured().get(experiment)
    return int(known["seeds"]) if known else len(load(experiment)[1].seeds)


def run_minutes(experiment: str, label: str) -> float | None:
    """Estimated minutes of one core for a run of a variant; ``None`` if that is not known.

    Where nothing is written down, it is what stored runs took: those of the variant, or of all.
    """
    known = measured().get(experiment)
    if known:
        own = known.get("variants", {}).get(label, known.get("minutes"))
        return None if own is None else float(own)
    took: dict[str, list[float]] = {}
    for row in stored(experiment).rows:
        if (row.split, row.measure) == (END, "seconds"):
            took.setdefault(row.label, []).append(row.value / 60)
    each = took.get(label) or [value for values in took.values() for value in values]
    return fmean(each) if each else None
