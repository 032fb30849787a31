"""A table that counts in how many tasks a network is among the best: table 4.1 of Chandar (2020).

The rule for ties: in a task, one network is better than another if the 95% interval of their
difference, paired over the seeds that both have, lies beyond zero; where all seeds have the same
difference, if a sign test says so, which takes six of them. A network is among the best k if fewer
than k networks are better than it. So networks that cannot be told apart share their places,
and more than k can be among the best k.

A tie can be had by having few seeds, or by seeds that disagree: so of a network that is among the
best k it is also counted in how many tasks it is *surely* so, where all others but k - 1 are worse.

A network competes in a task if it has a number from at least three seeds: one that mostly diverged
has none to be beaten by, and no place. One that solves a task in fewer than half of its seeds is
not among its best, whoever else fails. Where no more than k networks compete, all of them would be
among the best k, so such a task does not count.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from attractor.reproduction.claims import LEVEL, paired
from attractor.reproduction.outcomes import Outcomes
from attractor.reproduction.targets import Budget, Claim, Contest
from attractor.reproduction.verdicts import FEWEST


class Standing(NamedTuple):
    """A network in one task: how many are better, how many are worse, and how many compete."""

    better: int
    worse: int
    networks: int


class Count(NamedTuple):
    """In how many tasks a network is among the best, and surely so, of how many."""

    best: int
    surely: int
    of: int


@dataclass(frozen=True)
class Place:
    """A network in a table of contests.

    Args:
        row: of the document.
        asked: in how many tasks it is to compete.
        tasks: how it stands in those in which it competes.
    """

    row: str
    asked: int
    tasks: tuple[Standing, ...]

    def among(self, best: int) -> Count:
        """In how many tasks it is among the best, of those that count."""
        counts = [one for one in self.tasks if one.networks > best]
        return Count(
            sum(one.better < best for one in counts),
            sum(one.worse >= one.networks - best for one in counts),
            len(counts),
        )


def places(contests: Sequence[Contest], outcomes: Outcomes, budget: Budget = "full") -> list[Place]:
    """How each network does over all tasks that have results."""
    rows = list(dict.fromkeys(row for contest in contests for row in contest.rows))
    standings = [_standings(contest, outcomes, budget) for contest in contests]
    return [
        Place(
            row,
            sum(row in contest.rows for contest in contests),
            tuple(one[row] for one in standings if row in one),
        )
        for row in rows
    ]


def competing(
    contests: Sequence[Contest], outcomes: Outcomes, budget: Budget = "full"
) -> dict[str, int]:
    """By experiment, how many networks compete."""
    return {
        name: len(_standings(contest, outcomes, budget))
        for contest in contests
        if (name := _experiment(contest, budget)) is not None
    }


def _experiment(contest: Contest, budget: Budget) -> str | None:
    return contest.experiment if budget == "full" else contest.quick


def _standings(contest: Contest, outcomes: Outcomes, budget: Budget) -> dict[str, Standing]:
    """How each network stands that competes."""
    experiment = _experiment(contest, budget)
    if experiment is None:
        return {}
    found = outcomes.compared(experiment, contest.measure, contest.rows.values())
    enough = {row: found[label] for row, label in contest.rows.items()}
    each = standing({k: v for k, v in enough.items() if len(v) >= FEWEST}, contest)
    for row, one in each.items():
        solved = outcomes.final(experiment, contest.rows[row], "solved").values()
        if contest.measure == "steps_to_solve" and 2 * sum(solved) < len(solved):
            each[row] = Standing(one.networks - 1, 0, one.networks)
    return each


def standing(values: Mapping[str, Mapping[int, float]], contest: Contest) -> dict[str, Standing]:
    """By name, how many of the others are better and worse than it by the rule for ties."""

    def better(one: str, other: str) -> bool:
        claim = Claim("", contest.experiment, one, other, contest.measure, contest.test)
        found = paired(claim, values[one], values[other])
        return bool(found.effect and found.effect > 0 and found.p is not None and found.p < LEVEL)

    return {
        name: Standing(
            sum(better(one, name) for one in values if one != name),
            sum(better(name, one) for one in values if one != name),
            len(values),
        )
        for name in values
    }
