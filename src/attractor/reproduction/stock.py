"""The results that come with the package, and what there is of each target."""

from functools import cache

from attractor.reproduction.outcomes import WITHOUT_RUNS, Outcomes, stored
from attractor.reproduction.published import of_target
from attractor.reproduction.targets import TARGETS, Budget, Target

BUDGETS: tuple[Budget, ...] = ("full", "quick")


@cache
def _holders() -> dict[str, tuple[str, ...]]:
    """By experiment, the files of the targets that run it."""
    found: dict[str, dict[str, None]] = {}
    for one in TARGETS.values():
        for name in (*one.experiments("quick"), *one.experiments("full")):
            found.setdefault(name, {})[one.slug] = None
    return {name: tuple(slugs) for name, slugs in found.items()}


def kept(target: Target) -> Outcomes:
    """The stored numbers of a target: its own, and runs that it shares with other targets."""
    asked = [target, *(TARGETS[key] for key in target.derived)]
    wanted = {
        name for one in asked for name in (*one.experiments("quick"), *one.experiments("full"))
    }
    slugs = {slug for name in wanted for slug in _holders()[name]} - {target.slug}
    shared = [
        row for slug in sorted(slugs) for row in stored(slug).rows if row.experiment in wanted
    ]
    return Outcomes(shared).joined(stored(target.slug))


def status(target: Target) -> str:
    """In words: what is stored, or why there is nothing."""
    found = kept(target)
    told = [word for budget in BUDGETS if (word := _stored(target, budget, found))]
    if told:
        also = any(row.experiment in WITHOUT_RUNS for row in found.rows)
        return f"stored: {'; '.join(told)}{', and computed' if also else ''}"
    experiments = {**target.experiments("quick"), **target.experiments("full")}
    if found:
        return "computed; runs not done" if experiments else "computed"
    if target.figure:
        return f"drawn by attractor figure {target.figure}"
    if experiments or target.derived:
        return "not run"
    numbers = of_target(target.key)
    return "quoted" if numbers and all(one.quoted for one in numbers) else "no configuration"


def _stored(target: Target, budget: Budget, found: Outcomes) -> str:
    """How many of the variants have results at a budget, from how many seeds."""
    asked = [target, *(TARGETS[key] for key in target.derived)]
    wanted = {
        (name, label)
        for one in asked
        for name, (_, labels) in one.experiments(budget).items()
        if not (budget == "quick" and name in one.experiments("full"))
        for label in labels
    }
    ran: dict[tuple[str, str], set[int]] = {}
    for row in found.rows:
        if (row.experiment, row.label) in wanted:
            ran.setdefault((row.experiment, row.label), set()).add(row.seed)
    if not ran:
        return ""
    counts = sorted(map(len, ran.values()))
    seeds = f"{counts[0]} to {counts[-1]}" if counts[0] < counts[-1] else str(counts[0])
    part = "" if len(ran) == len(wanted) else f"{len(ran)} of {len(wanted)} variants, "
    return f"{budget}, {part}{seeds} seed{'s' * (seeds != '1')}"
