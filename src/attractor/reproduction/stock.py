"""The results that come with the package, and what there is of each target."""

from functools import cache

from attractor.reproduction.outcomes import WITHOUT_RUNS, Outcomes, stored
from attractor.reproduction.published import of_target
from attractor.reproduction.targets import TARGETS, Target


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
    experiments = {**target.experiments("quick"), **target.experiments("full")}
    found = kept(target)
    ran = [row for row in found.rows if row.experiment not in WITHOUT_RUNS]
    if ran:
        budgets = sorted({row.budget for row in ran})
        seeds = {row.seed for row in ran}
        also = ", and computed" if len(ran) < len(found.rows) else ""
        return f"stored: {' and '.join(budgets)}, {len(seeds)} seeds{also}"
    if found:
        return "computed; runs not done" if experiments else "computed"
    if target.figure:
        return f"drawn by attractor figure {target.figure}"
    if experiments or target.derived:
        return "not run"
    numbers = of_target(target.key)
    return "quoted" if numbers and all(one.quoted for one in numbers) else "no configuration"
