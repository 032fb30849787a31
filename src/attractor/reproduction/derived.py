"""A table that counts in how many tasks a network is among the best: table 4.1 of Chandar (2020).

The rule for ties: in a task, one network is better than another if the 95% interval of their
difference, paired over the seeds that both have, lies beyond zero. A network is among the best k if
fewer than k networks are better than it. So networks that cannot be told apart share their places,
and more than k can be among the best k.

A network competes in a task if it has a number from at least three seeds: one that mostly diverged
has none to be beaten by, and no place. Where no more than k networks compete, all of them would be
among the best k, so such a task does not count.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attractor.reproduction.claims import paired
from attractor.reproduction.outcomes import Outcomes
from attractor.reproduction.targets import Budget, Claim, Contest
from attractor.reproduction.verdicts import FEWEST


@dataclass(frozen=True)
class Place:
    """A network in a table of contests.

    Args:
        row: of the document.
        asked: in how many tasks it is to compete.
        beaten: by task in which it competes, how many are better, and how many compete.
    """

    row: str
    asked: int
    beaten: tuple[tuple[int, int], ...]

    def among(self, best: int) -> tuple[int, int, int]:
        """In how many tasks it is among the best, of how many that count, of how many asked."""
        counts = [better for better, networks in self.beaten if networks > best]
        return sum(better < best for better in counts), len(counts), self.asked


def places(contests: Sequence[Contest], outcomes: Outcomes, budget: Budget = "full") -> list[Place]:
    """How each network does over all tasks that have results."""
    rows = list(dict.fromkeys(row for contest in contests for row in contest.rows))
    beaten = [_beaten(contest, outcomes, budget) for contest in contests]
    return [
        Place(
            row,
            sum(row in contest.rows for contest in contests),
            tuple((one[row], len(one)) for one in beaten if row in one),
        )
        for row in rows
    ]


def competing(
    contests: Sequence[Contest], outcomes: Outcomes, budget: Budget = "full"
) -> dict[str, int]:
    """By experiment, how many networks compete."""
    return {
        name: len(_beaten(contest, outcomes, budget))
        for contest in contests
        if (name := _experiment(contest, budget)) is not None
    }


def _experiment(contest: Contest, budget: Budget) -> str | None:
    return contest.experiment if budget == "full" else contest.quick


def _beaten(contest: Contest, outcomes: Outcomes, budget: Budget) -> dict[str, int]:
    """By network that competes, how many are better."""
    experiment = _experiment(contest, budget)
    if experiment is None:
        return {}
    found = outcomes.compared(experiment, contest.measure, contest.rows.values())
    enough = {row: found[label] for row, label in contest.rows.items()}
    return better_than({k: v for k, v in enough.items() if len(v) >= FEWEST}, contest)


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
