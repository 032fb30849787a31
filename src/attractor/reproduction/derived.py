"""A table that counts in how many tasks a network is among the best: table 4.1 of Chandar (2020).

The rule for ties: in a task, one network is better than another if the 95% interval of their
difference, paired over the seeds that both have, lies beyond zero. A network is among the best k if
fewer than k networks are better than it. So networks that cannot be told apart share their places,
and more than k can be among the best k.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attractor.reproduction.claims import paired
from attractor.reproduction.outcomes import Outcomes
from attractor.reproduction.targets import Budget, Claim, Contest


@dataclass(frozen=True)
class Place:
    """A network's counts, and in how many tasks it has results."""

    row: str
    tasks: int
    first: int
    second: int


def places(contests: Sequence[Contest], outcomes: Outcomes, budget: Budget = "full") -> list[Place]:
    """Who is among the best one and two, over all tasks that have results."""
    rows = list(dict.fromkeys(row for contest in contests for row in contest.rows))
    beaten = [_beaten(contest, outcomes, budget) for contest in contests]
    return [
        Place(
            row,
            sum(row in one for one in beaten),
            sum(one.get(row, 1) < 1 for one in beaten),
            sum(one.get(row, 2) < 2 for one in beaten),
        )
        for row in rows
    ]


def _beaten(contest: Contest, outcomes: Outcomes, budget: Budget) -> dict[str, int]:
    """By network, how many are better; without those that have no results."""
    experiment = contest.experiment if budget == "full" else contest.quick
    if experiment is None:
        return {}
    found = outcomes.compared(experiment, contest.measure, contest.rows.values())
    values = {row: found[label] for row, label in contest.rows.items() if found[label]}
    return better_than(values, contest)


def better_than(values: Mapping[str, Mapping[int, float]], contest: Contest) -> dict[str, int]:
    """By name, how many of the others are better than it by the rule for ties."""

    def better(one: str, other: str) -> bool:
        claim = Claim("", contest.experiment, one, other, contest.measure, contest.test)
        found = paired(claim, values[one], values[other])
        if found.half_width is None or found.difference is None:
            return False
        ahead = -found.difference if contest.test == "lower" else found.difference
        return ahead > found.half_width

    return {name: sum(better(one, name) for one in values if one != name) for name in values}
