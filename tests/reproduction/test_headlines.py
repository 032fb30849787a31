"""The first table: a row for a claim, by verdict, with numbers of stored results."""

import re
from dataclasses import replace

import pytest

from attractor.reproduction.headlines import (
    HEADLINES,
    Headline,
    _came_out,
    headlined,
    points,
    rounded,
)
from attractor.reproduction.tables import all_claims
from attractor.reproduction.targets import TARGETS


def test_every_row_rests_on_claims_of_targets() -> None:
    shown = headlined(all_claims()).splitlines()
    assert len(shown) == 2 + len(HEADLINES) <= 14  # to be read in a minute
    assert "no runs" not in "".join(shown)
    assert not re.search(r"\de[+-]\d|±", "".join(shown))  # too much for a glance


def test_a_number_is_short() -> None:
    assert [points(x) for x in (0.1315, 0.0125, -0.00853, -0.0999)] == [
        "+13 points",
        "+1.2 points",
        "-0.9 points",
        "-10 points",
    ]
    assert [rounded(x) for x in (4079.0, 12.3, -1.04, 0.446, -0.0186, 9.96, 0)] == [
        "+4,100",
        "+12",
        "-1.0",
        "+0.45",
        "-0.019",
        "+10",
        "+0.0",
    ]


def test_claims_are_grouped_by_verdict() -> None:
    key = "001/figure-4.1"
    race, *_, quick = all_claims()[key]
    assert race.claim.measure == "steps_to_solve"
    points = replace(race.claim, says="points", measure="accuracy")
    found = [
        replace(race, n=20, right=19, verdict="holds"),
        replace(race, claim=points, n=8, difference=0.125, half_width=0.01, verdict="holds"),
        replace(quick, n=0, difference=None, verdict="not run"),
    ]
    rests = {name: f"{key}: {one.claim.says}" for name, one in zip("abc", found, strict=True)}
    told = _came_out(Headline("x", "y", rests), {key: found})
    assert told == ("**holds**: a (19 of 20 seeds), b (+12 points); **not run**: c (no runs)")
    with pytest.raises(AssertionError, match=f"{key} has 0 claims that say: nothing"):
        _came_out(Headline("x", "y", {"a": f"{key}: nothing"}), {key: found})


def test_targets_of_rows_exist() -> None:
    for one in HEADLINES:
        assert {given.partition(": ")[0] for given in one.rests.values()} <= {*TARGETS}
