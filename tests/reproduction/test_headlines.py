"""The first table: a row for a claim, by verdict, with numbers of stored results."""

from dataclasses import replace

import pytest

from attractor.reproduction.headlines import HEADLINES, Headline, _came_out, headlined
from attractor.reproduction.tables import all_claims
from attractor.reproduction.targets import TARGETS


def test_every_row_rests_on_claims_of_targets() -> None:
    shown = headlined(all_claims()).splitlines()
    assert len(shown) == 2 + len(HEADLINES) <= 14  # to be read in a minute
    assert "no runs" not in "".join(shown)


def test_claims_are_grouped_by_verdict() -> None:
    key = "001/figure-4.1"
    race, *_, quick = all_claims()[key]
    assert race.claim.measure == "steps_to_solve"
    points = replace(race.claim, says="points", measure="accuracy")
    found = [
        replace(race, n=20, right=19, verdict="holds"),
        replace(race, claim=points, n=8, difference=0.125, half_width=0.01, verdict="holds"),
        replace(quick, n=0, verdict="not run"),
    ]
    rests = {name: f"{key}: {one.claim.says}" for name, one in zip("abc", found, strict=True)}
    told = _came_out(Headline("x", "y", rests), {key: found})
    assert told == (
        "**holds**: a (19 of 20 seeds), b (+12.5 points ± 1, 8 seeds); **not run**: c (no runs)"
    )
    with pytest.raises(AssertionError, match=f"{key} has 0 claims that say: nothing"):
        _came_out(Headline("x", "y", {"a": f"{key}: nothing"}), {key: found})


def test_targets_of_rows_exist() -> None:
    for one in HEADLINES:
        assert {given.partition(": ")[0] for given in one.rests.values()} <= {*TARGETS}
