"""Survival curves and tests over seeds, against sums written out by hand."""

import math
from pathlib import Path
from statistics import fmean, median

import numpy as np
import pytest
from scipy import stats

from attractor.errors import InputError
from attractor.results.contrast import contrast
from attractor.results.survival import (
    Survival,
    ending,
    fate,
    kaplan_meier,
    log_rank,
    peak,
    survival,
)
from attractor.runs.read import Run


def run(
    label: str,
    seed: int,
    *losses: float,
    solved: int | None = None,
    status: str = "done",
    steps: int = 900,
) -> Run:
    test = {"loss": losses[-1], "steps_to_solve": solved or steps}
    return Run(
        Path(f"{label}-{seed}"),
        {
            "experiment": "copy",
            "budget": "quick",
            "label": label,
            "seed": seed,
            "train": {"steps": steps},
        },
        tuple({"step": 10 * (i + 1), "split": "valid", "loss": x} for i, x in enumerate(losses)),
        {},
        {"test": test | {"solved": 0.0 if solved is None else 1.0}},
        status,  # type: ignore[arg-type]
    )


def test_a_survival_curve_is_the_product_over_those_still_at_it() -> None:
    # at 200 two of seven, at 300 one of four (one was given 250 only), at 500 one of two
    curve = kaplan_meier([200, 200, 300, 500], [250, 300, 900])
    assert curve.steps.tolist() == [0, 200, 300, 500]
    np.testing.assert_allclose(curve.share, [1, 5 / 7, 5 / 7 * 3 / 4, 5 / 7 * 3 / 4 / 2])
    assert (curve.n, curve.median) == (7, 500)
    assert kaplan_meier([], [10, 20]).median is None
    assert kaplan_meier([10, 20], []).median == 10


def by_hand(first: Survival, second: Survival) -> float:
    """The log-rank test from its table: observed less expected, over its variance."""
    observed = expected = spread = 0.0
    for step in sorted({*first.at, *second.at}):
        risk = [sum(x >= step for x in (*one.at, *one.given)) for one in (first, second)]
        gone = [one.at.count(step) for one in (first, second)]
        n, d = sum(risk), sum(gone)
        observed += gone[0]
        expected += d * risk[0] / n
        if n > 1:
            spread += d * (risk[0] / n) * (risk[1] / n) * (n - d) / (n - 1)
    return math.erfc(abs(observed - expected) / math.sqrt(2 * spread))


def test_the_log_rank_test_is_that_of_its_table() -> None:
    first = kaplan_meier([120, 340, 340, 500], [700, 700])
    second = kaplan_meier([340, 610], [400, 700, 700, 700, 700])
    assert log_rank(first, second) == pytest.approx(by_hand(first, second), rel=1e-9)
    assert log_rank(first, second) == pytest.approx(log_rank(second, first))
    assert log_rank(kaplan_meier([], [5, 5]), kaplan_meier([], [5])) == 1.0


def test_runs_that_explode_count_for_all_they_were_given_and_unfinished_ones_do_not() -> None:
    runs = [
        run("NRU", 0, 0.2, 0.001, solved=300),
        run("NRU", 1, 0.2, 0.1),
        run("NRU", 2, 0.2, 7.0, status="failed"),
        run("NRU", 3, 0.2, 0.1, status="unfinished"),
        run("GRU", 0, 0.2, 0.2, steps=400),
    ]
    nru, gru = survival(runs)
    assert (nru.label, nru.at, nru.given) == ("NRU", (300,), (900, 900))
    assert (gru.label, gru.at, gru.given) == ("GRU", (), (400,))


def test_how_a_run_ended() -> None:
    unit = 0.0173
    still = [0.17] * 40 + [3.1 * unit, 2.9 * unit] * 5
    assert ending(run("a", 0, *still), unit) == ("stands still", 2.9 * unit, 3)
    spike = [0.17] * 40 + [3.1 * unit, 2.9 * unit] * 4 + [90.0, 3 * unit]
    assert ending(run("a", 0, *spike), unit) == ("stands still", 3 * unit, 3)
    often = [0.17] * 40 + [3 * unit] * 7 + [3.3 * unit] * 3
    assert ending(run("a", 0, *often), unit).fate == "on its way"
    moving = [0.17] * 40 + [3.4 * unit] * 5 + [3.1 * unit] * 5
    assert ending(run("a", 0, *moving), unit).fate == "on its way"
    between = [0.17] * 40 + [2.5 * unit] * 10
    assert ending(run("a", 0, *between), unit).fate == "on its way"
    assert ending(run("a", 0, 0.17, 0.009, solved=20), unit).fate == "solved"
    assert ending(run("a", 0, 0.17, 0.35), unit).fate == "exploded"
    assert ending(run("a", 0, 0.17, 0.05, status="failed"), unit).fate == "exploded"
    assert fate([0.17, math.nan], unit).fate == "exploded"
    with pytest.raises(InputError, match="above zero, but got 0"):
        ending(run("a", 0, 0.1), 0)


def test_a_run_exploded_beyond_twice_its_first_loss_alone() -> None:
    assert fate([0.25, 0.5], 0.01).fate == "on its way"
    assert fate([0.25, 0.501], 0.01).fate == "exploded"
    assert (peak([0.25, 0.5, 0.1]), peak([0.25, 0.501, 0.1]), peak([])) == (None, 0.501, None)


def test_what_a_run_stands_still_at_is_that_of_four_in_five_late_losses() -> None:
    first, at = [9.0], [3.0]
    assert fate([9.0] * 40 + at * 8 + [3.4] * 2, 1.0) == ("stands still", 3.4, 3)
    assert fate([9.0] * 16 + at * 3 + [3.4], 1.0).fate == "on its way"  # three of four
    late = [math.inf, math.nan, math.inf] + at * 7  # those that are no number say nothing
    assert fate(first * 40 + late, 1.0) == ("stands still", 3.0, 3)
    assert fate([9.0, 4.4, 2.0], 1.0).fate == "on its way"  # of few losses, two at least
    assert fate(first * 40 + [0.01] * 10, 1.0) == ("on its way", 0.01, None)  # of all symbols
    assert fate([], 1.0).fate == "on its way"
    assert fate([9.0] * 8 + [3.25] * 2, 1.0, near=0.25).fate == "stands still"  # no farther


def test_a_variant_of_unfinished_runs_has_no_curve() -> None:
    assert survival([run("NRU", 0, 0.2, 0.1, status="unfinished")]) == []


def test_a_contrast_is_welchs_and_brown_and_forsythes() -> None:
    g = np.random.default_rng(3)
    a, b = g.normal(95.5, 0.5, 12).tolist(), g.normal(95.0, 1.5, 7).tolist()
    found = contrast(a, b)
    peer = stats.ttest_ind(a, b, equal_var=False)
    interval = peer.confidence_interval(0.95)
    assert found.welch == pytest.approx(float(peer.pvalue))
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.difference == pytest.approx(fmean(a) - fmean(b))
    assert found.ratio == pytest.approx(np.std(a, ddof=1) / np.std(b, ddof=1))
    distances = [[abs(x - median(values)) for x in values] for values in (a, b)]
    assert found.brown_forsythe == pytest.approx(float(stats.f_oneway(*distances).pvalue))


@pytest.mark.parametrize(
    ("values", "message"),
    [([1.0], "at least two finite"), ([1.0, math.nan], "finite"), ([2.0, 2.0], "that differ")],
)
def test_too_little_to_compare(values: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        contrast(values, [1.0, 2.0])
