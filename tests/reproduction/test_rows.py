"""How numbers and claims are written in the rows of tables."""

import math
from typing import Any

import pytest

from attractor.estimates import estimate
from attractor.reproduction.claims import Finding
from attractor.reproduction.outcomes import EXACT
from attractor.reproduction.published import Number
from attractor.reproduction.tables import _number_row, claim_row, claim_rows
from attractor.reproduction.targets import Claim
from attractor.reproduction.verdicts import Judged


def claim(**more: Any) -> Claim:
    return Claim(**{"says": "A is better", "experiment": "demo", "ours": "A", **more})


def finding(of: Claim, **more: Any) -> Finding:
    return Finding(**{"claim": of, "n": 5, "difference": 0.0123, "half_width": 0.004, **more})


@pytest.mark.parametrize(
    ("p", "told"), [(0.0234, "0.023"), (0.001, "0.001"), (0.00099, "< 0.001"), (None, "")]
)
def test_a_p_has_three_digits(p: float | None, told: str) -> None:
    assert claim_row(finding(claim(), corrected=p))[5] == told


def test_shares_are_in_points_unless_they_stand_beside_a_bound() -> None:
    accuracy = finding(claim(measure="accuracy", other="B"))
    loss = finding(claim(measure="loss", other="B"))
    bound = finding(claim(measure="accuracy", bound=0.5))
    said = finding(claim(measure="steps", bound=2000.0, test="same", margin=1.0))
    assert [row[1:3] for row in claim_rows([accuracy, loss, bound, said])] == [
        ["+1.23 points", "± 0.4"],
        ["+0.0123", "± 0.004"],
        ["0.5123, bound 0.5", "± 0.004"],
        ["2,000, said 2,000", "± 0.004"],
    ]


def test_numbers_from_a_thousand_on_are_whole() -> None:
    rows = [finding(claim(measure="loss", bound=b), difference=0.6) for b in (998.8, 999.4)]
    assert [claim_row(one)[1] for one in rows] == ["999.4, bound 998.8", "1,000, bound 999.4"]


def test_seeds_and_effects_are_told_where_there_are_some() -> None:
    tested = finding(claim(control=True), right=4, diverged=2, effect=1.255)
    assert claim_row(tested)[0] == "A is better (a control of ours)"
    assert claim_row(tested)[3:5] == ["+1.25", "4 of 5, 2 diverged"]
    few = finding(claim(), n=2, half_width=None, effect=math.inf, verdict="few seeds")
    assert claim_row(few)[2:] == ["", "", "2", "", "few seeds"]
    assert claim_row(Finding(claim(), 0)) == ["A is better", "", "", "", "", "", "not run"]
    exact = finding(claim(experiment=EXACT), n=1, half_width=None, verdict="holds")
    assert claim_row(exact)[4:] == ["exact", "", "holds, exact"]


def test_a_number_has_two_digits_or_those_of_its_column() -> None:
    whole = Number("no target", "", "A", "ACC", 5.0, "%", "higher", "1")
    fine = whole._replace(value=0.0125, spread=0.25)
    ours = estimate([5.2, 5.4, 5.3])
    assert (whole.rounding, fine.rounding) == (0.5, 0.00005)
    shared = whole._replace(target="000/table-6.1")  # whose column prints two digits
    assert shared.rounding == 0.005
    assert _number_row(Judged(whole, "A", ours, "close"))[2:] == [
        "5 %", "5.30", "± 0.25", "3", "close",
    ]  # fmt: skip
    assert _number_row(
        Judged(fine, "A", ours, "worse", over_tasks=1.25, diverged=2, unsolved=1, why="early")
    )[2:] == [
        "0.0125 ± 0.25 %", "5.3000 (1.2 over tasks)", "± 0.2484", "3, 2 diverged, 1 unsolved",
        "worse: early",
    ]  # fmt: skip
    assert _number_row(Judged(whole, "A", None, "no interval", 0.12345))[3:6] == ["0.1235", "", ""]
