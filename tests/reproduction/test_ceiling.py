"""Runs that diverged though their numbers are finite."""

import pytest

from attractor.reproduction.claims import examined
from attractor.reproduction.outcomes import DIVERGED, END, Outcomes, Row
from attractor.reproduction.targets import Claim


@pytest.mark.parametrize(("ceiling", "right"), [(0.2, 1), (0.25, 2), (1e6 - 1, 2), (1e9, 3)])
def test_a_run_that_ends_above_the_ceiling_has_diverged(ceiling: float, right: int) -> None:
    ended = {0: 0.1, 1: 0.25, 2: 1e6}
    rows = [Row("demo", "full", "A", seed, "r", END, 9, "loss", v) for seed, v in ended.items()]
    rows.append(Row("demo", "full", "A", 3, "r", END, 2, DIVERGED, 1.0))
    asked = Claim("", "demo", "A", measure=DIVERGED, test="lower", bound=0.5, ceiling=ceiling)
    found = examined(asked, Outcomes(rows))
    assert (found.n, found.right) == (4, right)
    assert found.difference == pytest.approx((4 - right) / 4 - 0.5)
