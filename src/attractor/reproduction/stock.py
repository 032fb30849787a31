"""The results that come with the package, and what there is of each target."""

from itertools import chain
from typing import NamedTuple

from attractor.reproduction.costs import costs
from attractor.reproduction.outcomes import EXACT, WITHOUT_RUNS, Outcomes, stored
from attractor.reproduction.targets import ASIDES, TARGETS, Budget, Target

BUDGETS: tuple[Budget, ...] = ("full", "quick")


def kept(target: Target) -> Outcomes:
    """The stored numbers of a target: of its runs and those it is derived from, and computed."""
    asked = [target, *(TARGETS[key] for key in target.derived)]
    names = {
        name for one in asked for name in (*one.experiments("quick"), *one.experiments("full"))
    }
    tables = map(stored, (*sorted(names), f"{target.slug}.{EXACT}"))
    return Outcomes(chain.from_iterable(one.rows for one in tables))


def status(target: Target) -> str:
    """In words: what is stored, or why there is nothing."""
    found = kept(target)
    runs = _runs(target, found)
    if runs:
        told = "; ".join(f"{budget}, {one.told}" for budget, one in runs.items())
        return f"stored: {told}{', and computed' if _computed(found) else ''}"
    experiments = {**target.experiments("quick"), **target.experiments("full")}
    if found:
        return "computed; runs not done" if experiments else "computed"
    return "not run" if experiments or target.derived else "quoted"


def brief(target: Target) -> str:
    """In a word or two: the budgets of stored runs, of which there may be *some*, or what else."""
    found = kept(target)
    runs = _runs(target, found)
    told = [str(budget) if one.whole else f"some {budget}" for budget, one in runs.items()]
    if told[:1] == ["full"]:
        told = ["full"]
    if _computed(found):
        told.append("computed")
    return ", ".join(told) or status(target)


def _computed(found: Outcomes) -> bool:
    return any(row.experiment in WITHOUT_RUNS for row in found.rows)


class Stored(NamedTuple):
    """The stored runs of a budget, in words, and whether they are all that are planned."""

    told: str
    whole: bool


def _runs(target: Target, found: Outcomes) -> dict[Budget, Stored]:
    each = {budget: _stored(target, budget, found) for budget in BUDGETS}
    return {budget: one for budget, one in each.items() if one}


def _stored(target: Target, budget: Budget, found: Outcomes) -> Stored | None:
    """How many of the variants have results at a budget, from how many of the planned seeds."""
    asked = [target, *(TARGETS[key] for key in target.derived)]
    wanted = {
        (name, label): len(seeds) or costs().get(name, {}).get("seeds", 0)
        for one in asked
        for name, (seeds, labels) in one.experiments(budget).items()
        if not (budget == "quick" and name in one.experiments("full"))
        for label in labels
    }
    ran: dict[tuple[str, str], set[int]] = {}
    for row in found.rows:
        if (row.experiment, row.label) in wanted:
            ran.setdefault((row.experiment, row.label), set()).add(row.seed)
    if not ran:
        return None
    counts = sorted(map(len, ran.values()))
    seeds = f"{counts[0]} to {counts[-1]}" if counts[0] < counts[-1] else str(counts[0])
    fewer = any(len(done) < wanted[variant] for variant, done in ran.items())
    if fewer:
        planned = {wanted[variant] for variant in ran}
        seeds += f" of {'up to ' * (len(planned) > 1)}{max(planned)}"
    part = "" if len(ran) == len(wanted) else f"{len(ran)} of {len(wanted)} variants, "
    return Stored(f"{part}{seeds} seed{'s' * (seeds != '1')}", not part and not fewer)


def left_out() -> list[tuple[str, str]]:
    """The places that are no targets, and why: those of one document for one reason together.

    Example:
        >>> left_out()[-2]
        ('003/table-1', 'equations of cells, without numbers')
    """
    found: dict[tuple[str, str], list[str]] = {}
    for key, why in ASIDES.items():
        found.setdefault((key.partition("/")[0], why), []).append(key)
    return [(", ".join(places), why) for (_, why), places in found.items()]
