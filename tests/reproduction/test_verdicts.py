"""Verdicts against numbers worked out by hand and by scipy."""

import math
from dataclasses import replace
from typing import Any

import pytest
from scipy import stats

from attractor.reproduction.claims import Finding, corrected, paired
from attractor.reproduction.outcomes import END, Outcomes, Row
from attractor.reproduction.published import Number
from attractor.reproduction.tables import all_claims
from attractor.reproduction.targets import Budget, Claim, target
from attractor.reproduction.verdicts import judge

OURS = {0: 0.810, 3: 0.830, 4: 0.826, 7: 0.818, 9: 0.835}
OTHER = {0: 0.780, 3: 0.779, 4: 0.792, 7: 0.797, 8: 0.9, 9: 0.785}


def number(value: float, better: str = "higher", **more: Any) -> Number:
    return Number("000/table-6.1", "Table", "A", "ACC", value, "%", better, "1", **more)


def claim(test: str = "higher", **more: Any) -> Claim:
    return Claim("", "demo", "A", "B", "accuracy", test, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "tolerance", "better", "verdict"),
    [
        # mean 82.38, half width 1.23 (t 2.776, deviation 0.99)
        (83.60, 1.5, "higher", "agrees"),
        (83.614, 1.5, "higher", "agrees"),  # by half of the last digit that the column prints
        (83.60, 1.0, "higher", "undecided"),
        (83.617, 1.5, "higher", "close"),
        (84.00, 1.5, "higher", "worse"),
        (84.00, 1.5, "lower", "better"),
        (80.80, 1.5, "higher", "better"),
        (84.00, 1.5, "none", "differs"),
    ],
)
def test_the_rule(value: float, tolerance: float, better: str, verdict: str) -> None:
    ours, found = judge(number(value, better), OURS, tolerance)
    assert ours is not None
    assert ours.mean == pytest.approx(82.38)
    assert ours.half_width == pytest.approx(
        stats.sem([100 * v for v in OURS.values()]) * stats.t.ppf(0.975, 4)
    )
    assert found == verdict


def test_what_is_no_verdict() -> None:
    assert judge(number(82.4)._replace(row="A (quoted)"), OURS, 1) == (None, "quoted")
    assert judge(number(82.4), {}, 1) == (None, "not run")
    assert judge(number(82.4), OURS, 1.5, full=False)[1] == "quick"
    assert judge(number(82.4), {0: 0.82, 1: 0.83}, 9)[1] == "few seeds"
    # a spread takes no part
    assert judge(number(90, spread=50.0), OURS, 1.5)[1] == "worse"


def test_pairs_are_of_shared_seeds_and_agree_with_scipy() -> None:
    shared = [0, 3, 4, 7, 9]
    a, b = [OURS[s] for s in shared], [OTHER[s] for s in shared]
    found = paired(claim(), OURS, OTHER)
    expected = stats.ttest_rel(a, b)
    assert (found.n, found.right) == (5, 5)
    assert found.p == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval(0.95)
    assert found.difference == pytest.approx((low + high) / 2)
    assert found.half_width == pytest.approx((high - low) / 2)
    assert found.effect == pytest.approx(expected.statistic / math.sqrt(5))
    lower = paired(claim("lower"), OURS, OTHER)
    assert (lower.difference, lower.p, lower.right) == (found.difference, found.p, 0)
    assert found.effect is not None
    assert lower.effect == pytest.approx(-found.effect)


def test_steadier_and_same() -> None:
    shared = [0, 3, 4, 7, 9]
    a, b = [OURS[s] for s in shared], [OTHER[s] for s in shared]
    far = [[abs(v - sorted(all_)[2]) for v in all_] for all_ in (a, b)]
    found = paired(claim("steadier"), OURS, OTHER)
    assert found.p == pytest.approx(stats.ttest_rel(far[0], far[1]).pvalue)
    same = paired(claim("same", margin=0.055), OURS, OTHER)
    differences = [x - y for x, y in zip(a, b, strict=True)]
    ends = (
        stats.ttest_1samp(differences, -0.055, alternative="greater").pvalue,
        stats.ttest_1samp(differences, 0.055, alternative="less").pvalue,
    )
    assert same.p == pytest.approx(max(ends))
    assert corrected([same])[0].verdict == "holds"
    apart = paired(claim("same", margin=0.03), OURS, OTHER)
    assert corrected([apart])[0].verdict == "not shown"
    beyond = paired(claim("same", margin=0.001), OURS, {s: v - 0.2 for s, v in OTHER.items()})
    assert corrected([beyond])[0].verdict == "contradicted"


@pytest.mark.parametrize(
    ("test", "margin", "differences", "right", "numerator"),
    [
        # all means are over a deviation of 3: differences of -4, -1 and 2 around one of -1
        ("same", 5.0, (-4.0, -1.0, 2.0), 3, 5 - 1),
        ("same", 3.0, (-4.0, -1.0, 2.0), 2, 3 - 1),
        ("same", 4.0, (-4.0, -1.0, 2.0), 3, 4 - 1),  # the margin itself is within it
        ("same", 0.5, (4.0, 1.0, -2.0), 0, 0.5 - 1),
        ("no lower", 2.0, (-4.0, -1.0, 2.0), 2, 2 - 1),
        ("no lower", 0.5, (-4.0, -1.0, 2.0), 1, 0.5 - 1),
        ("no lower", 2.0, (4.0, 1.0, -2.0), 3, 2 + 1),
        ("higher", 2.0, (-4.0, -1.0, 2.0), 1, -1),
        ("lower", 2.0, (-4.0, -1.0, 2.0), 2, 1),
    ],
)
def test_effects_and_seeds_are_counted_on_the_side_of_the_claim(
    test: str, margin: float, differences: tuple[float, ...], right: int, numerator: float
) -> None:
    other = {0: 10.0, 1: 30.0, 2: 20.0}
    ours = {seed: other[seed] + value for seed, value in enumerate(differences)}
    found = paired(claim(test, margin=margin), ours, other)
    assert found.difference == pytest.approx(sum(differences) / 3)
    assert found.right == right
    assert found.effect == pytest.approx(numerator / 3)
    t = math.sqrt(3) * numerator / 3
    sided = stats.t.sf(t, 2) if test in ("same", "no lower") else 2 * stats.t.sf(abs(t), 2)
    assert found.p == pytest.approx(sided)


@pytest.mark.parametrize(("n", "verdict"), [(5, "not shown"), (6, "contradicted")])
def test_seeds_that_all_agree_are_counted_and_not_taken_for_certain(n: int, verdict: str) -> None:
    none_solved = dict.fromkeys(range(n), 0.0)
    found = paired(claim("higher"), none_solved, dict.fromkeys(range(n), 0.5))
    assert found.p == stats.binomtest(0, n, 0.5).pvalue == 2 * 0.5**n
    assert corrected([found])[0].verdict == verdict
    near = paired(claim("same", margin=0.7), none_solved, dict.fromkeys(range(n), 0.5))
    assert near.p == stats.binomtest(n, n, 0.5, alternative="greater").pvalue == 0.5**n
    beyond = paired(claim("same", margin=0.3), none_solved, dict.fromkeys(range(n), 0.5))
    assert beyond.p == 1


def test_claims_can_come_out_false_and_many_are_harder() -> None:
    right, wrong = paired(claim(), OURS, OTHER), paired(claim("lower"), OURS, OTHER)
    assert [one.verdict for one in corrected([right, wrong])] == ["holds", "contradicted"]
    several = [Finding(claim(), 5, 1.0, 1.0, p=p) for p in (0.04, 0.01, 0.03)]
    assert [one.corrected for one in corrected(several)] == pytest.approx([0.06, 0.03, 0.06])
    luck = [Finding(claim(), 5, 0.0, 1.0, p=0.9) for _ in range(20)]
    assert corrected([right, *luck])[0].verdict == "not shown"
    assert corrected([paired(claim(), {0: 1, 1: 1}, {0: 0, 1: 0})])[0].verdict == "few seeds"
    never = corrected([paired(claim(), {0: 1.0, 1: 1.0, 2: 1.0}, {0: 1.0, 1: 1.0, 2: 1.0})])[0]
    assert (never.verdict, never.p) == ("not shown", 1.0)


@pytest.mark.parametrize(
    ("test", "tail", "times"),
    [("same", "greater", 2), ("same", "less", 2), ("no lower", "less", 1)],
)
def test_a_claim_of_a_margin_is_contradicted_alone_and_not_in_a_family(
    test: str, tail: Any, times: int
) -> None:
    sign = 1 if tail == "greater" else -1
    ours = {seed: sign * value for seed, value in enumerate((0.17, 0.3, 0.22, 0.26, 0.36))}
    found = paired(claim(test, margin=0.1), ours, dict.fromkeys(ours, 0.0))
    beyond = stats.ttest_1samp([*ours.values()], sign * 0.1, alternative=tail).pvalue
    assert found.contrary == pytest.approx(times * beyond)
    assert 0.0025 < times * beyond < 0.025  # one of two p, or of 22
    (alone,) = corrected([found])
    assert alone.verdict == "contradicted"
    assert alone.corrected == pytest.approx(2 * times * beyond)
    luck = [Finding(claim(), 5, 0.0, 1.0, p=0.9) for _ in range(20)]
    among = corrected([found, *luck])[0]
    assert (among.verdict, among.corrected) == ("not shown", 1.0)
    near = paired(claim(test, margin=1.0), ours, dict.fromkeys(ours, 0.0))
    assert corrected([near, *luck])[0].verdict == "holds"


@pytest.mark.parametrize(
    ("test", "difference", "told"),
    [
        ("higher", 0.5, "quick, as claimed"),
        ("higher", -0.5, "quick, the other way"),
        ("lower", -0.5, "quick, as claimed"),
        ("steadier", 0.5, "quick, the other way"),
        ("lower", -0.3, "quick, open"),
        ("lower", 0.0, "quick, open"),
        ("same", -0.5, "quick, as claimed"),
        ("same", 0.8, "quick, open"),
        ("same", -1.5, "quick, the other way"),
        ("no lower", -0.5, "quick, as claimed"),
        ("no lower", -0.8, "quick, open"),
        ("no lower", -1.5, "quick, the other way"),
    ],
)
def test_quick_runs_lean_where_their_interval_lies(test: str, difference: float, told: str) -> None:
    asked = claim(test, margin=1.0)
    found = Finding(asked, 3, difference, 0.4, verdict="quick")
    assert found.told == told
    assert replace(found, verdict="not shown").told == "not shown"


@pytest.mark.parametrize(
    ("margin", "shift", "verdict"),
    [(0.02, -0.01, "holds"), (0.0101, -0.01, "not shown"), (0.02, -0.1, "contradicted")],
)
def test_no_lower_is_one_sided_against_a_margin(margin: float, shift: float, verdict: str) -> None:
    other = {seed: 0.7 + 0.01 * seed for seed in range(6)}
    wobble = [0.0, 0.002, -0.002, 0.001, -0.001, 0.0]
    ours = {seed: other[seed] + shift + wobble[seed] for seed in other}
    found = paired(claim("no lower", margin=margin), ours, other)
    differences = [ours[seed] - other[seed] for seed in other]
    expected = stats.ttest_1samp(differences, -margin, alternative="greater").pvalue
    assert found.p == pytest.approx(expected, rel=1e-6)
    assert corrected([found])[0].verdict == verdict


@pytest.mark.parametrize("test", ["higher", "lower", "steadier"])
def test_rounding_is_no_spread(test: str) -> None:
    ours, other = {0: 0.82, 1: 0.76, 2: 0.70}, {0: 0.81, 1: 0.75, 2: 0.69}
    assert len({ours[seed] - other[seed] for seed in ours}) > 1  # in doubles
    found = paired(claim(test), ours, other)
    assert found.p == pytest.approx(1.0 if test == "steadier" else 0.25)
    apart = paired(claim(test), ours, {**other, 2: 0.69 + 1e-6})
    assert apart.p is not None
    assert apart.p < 1e-6 or test == "steadier"  # but a real spread, however small, is one


def test_a_claim_with_too_few_full_runs_is_told_by_quick_ones() -> None:
    own = target("001/figure-4.1")
    asked = next(one for one in own.claims if one.quick and one.measure == "steps_to_solve")
    assert asked.quick is not None
    budgets: list[tuple[str, Budget, int]] = [
        (asked.experiment, "full", 2),
        (asked.quick, "quick", 4),
    ]
    rows = [
        Row(name, budget, label, seed, label, END, 9, measure, value)
        for name, budget, seeds in budgets
        for place, label in enumerate(
            (asked.label(asked.ours, budget), asked.label(asked.other, budget))
        )
        for seed in range(seeds)
        for measure, value in (("solved", 1.0), ("steps_to_solve", 100.0 + (50 + seed) * place))
    ]
    few = {f.claim.says: f for f in all_claims(own, Outcomes(rows))[own.key]}[asked.says]
    assert (few.n, few.told) == (4, "quick, as claimed")
    full = Outcomes(one for one in rows if one.budget == "full")
    alone = {f.claim.says: f for f in all_claims(own, full)[own.key]}[asked.says]
    assert (alone.n, alone.verdict) == (2, "few seeds")
    more = [r._replace(seed=2) for r in rows if r.budget == "full" and r.seed == 1]
    enough = {f.claim.says: f for f in all_claims(own, Outcomes([*rows, *more]))[own.key]}[
        asked.says
    ]
    assert (enough.n, enough.verdict) == (3, "holds")
