"""The results that come with the package, and what there is of each target."""

from attractor.reproduction.outcomes import Outcomes, stored
from attractor.reproduction.targets import TARGETS, Target


def kept(target: Target) -> Outcomes:
    """The stored numbers of a target, and of those it is derived from."""
    found = stored(target.slug)
    for key in target.derived:
        found = stored(TARGETS[key].slug).joined(found)
    return found


def status(target: Target) -> str:
    """In words: what is stored, or why there is nothing."""
    experiments = {**target.experiments("quick"), **target.experiments("full")}
    if found := kept(target):
        budgets = sorted({row.budget for row in found.rows})
        seeds = {row.seed for row in found.rows}
        return f"stored: {' and '.join(budgets)}, {len(seeds)} seeds"
    if target.figure:
        return f"drawn by attractor figure {target.figure}"
    if experiments or target.derived:
        return "not run"
    return "no configuration"
