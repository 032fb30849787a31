"""The results that come with the package, and what there is of each target."""

from itertools import chain

from attractor.reproduction.costs import costs
from attractor.reproduction.outcomes import EXACT, WITHOUT_RUNS, Outcomes, stored
from attractor.reproduction.published import of_target
from attractor.reproduction.targets import TARGETS, Budget, Target

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
        return ""
    counts = sorted(map(len, ran.values()))
    seeds = f"{counts[0]} to {counts[-1]}" if counts[0] < counts[-1] else str(counts[0])
    if any(len(done) < wanted[variant] for variant, done in ran.items()):
        planned = {wanted[variant] for variant in ran}
        seeds += f" of {'up to ' * (len(planned) > 1)}{max(planned)}"
    part = "" if len(ran) == len(wanted) else f"{len(ran)} of {len(wanted)} variants, "
    return f"{budget}, {part}{seeds} seed{'s' * (seeds != '1')}"
