r"""Claims of the documents, tested on runs that share their seeds.

Let :math:`d_s` be ours less the other's at seed s, :math:`\bar d` its mean and :math:`\sigma` its
standard deviation over n seeds. Of each test there is an effect size e, positive where the claim is
right, with :math:`t = \sqrt n\, e`.

- *higher*, *lower*: a paired t test, two-sided; :math:`e = \bar d / \sigma`, of *lower* its
  negative.
- *steadier*: *lower* on the distances of each variant from its own median (the test of Brown and
  Forsythe, paired).
- *same*: two one-sided t tests against a margin m, of which the larger p counts;
  :math:`e = (m - |\bar d|) / \sigma`.
- *no lower*: one of them, which says that ours is not below the other by the margin;
  :math:`e = (m + \bar d) / \sigma`.

A test against a margin has a second p, for the contrary: that the difference lies beyond the
margin. It is one-sided too, and doubled for *same*, which has a margin on either side.

Where all :math:`d_s` are the same but for rounding, as where no seed solves a task, :math:`\sigma`
is zero and the t test would be certain of anything. There the sign test counts: n seeds on one
side have a p of :math:`2^{-n}`, two-sided :math:`2^{1-n}`.

A seed has it right where its own :math:`d_s` is on the claimed side of zero, or of the margin.

All p are corrected by Holm over all claims that have results, so that a verdict does not depend on
the page it is read on. Beside a bound, in place of another variant, the same tests compare with
that number. What is computed exactly needs no test: its sign decides. A claim *holds* if its
corrected p is below 0.05 and the difference has the claimed sign; it is *contradicted* if the
difference has the other sign (for *same* and *no lower*: if the corrected p for the contrary is
below 0.05); else it is *not shown*. Fewer than three shared seeds, and runs shorter than the
document's, give no verdict; of such quick runs it is said whether their 95% interval, uncorrected,
lies on the side of the claim.

A run that did not solve its task, diverged ones among them, counts as the longest run of the two
variants, and beside a bound as no shorter than that. Of other measures a run that diverged has
none, but for the mean over a window of steps that it has passed: how many there are without a
number is shown beside the seeds.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean, median, stdev

from attractor.estimates import holm, t_quantile, t_tail
from attractor.reproduction.outcomes import DIVERGED, EXACT, WITHOUT_RUNS, Outcomes
from attractor.reproduction.targets import Budget, Claim
from attractor.reproduction.verdicts import FEWEST

LEVEL = 0.05

NOISE = 1e-9
"""Differences below this share of the numbers themselves are taken for rounding."""

AGAINST_MARGIN = ("same", "no lower")
"""Tests that compare with a margin, one-sided."""

LAST = 0.2
"""The share of a run that counts as its end."""


@dataclass(frozen=True)
class Finding:
    """A claim and what the runs say of it.

    ``difference`` and ``half_width`` are of ours less the other's, in units of the measure;
    ``right`` counts the seeds on the side of the claim, and ``diverged`` runs without a number.
    ``contrary`` is the p of a difference beyond the margin, where the test has one; ``corrected``
    is the corrected p of the verdict.
    """

    claim: Claim
    n: int
    difference: float | None = None
    half_width: float | None = None
    effect: float | None = None
    right: int = 0
    diverged: int = 0
    p: float | None = None
    contrary: float | None = None
    corrected: float | None = None
    verdict: str = "not run"

    @property
    def told(self) -> str:
        """The verdict, and whether it is exact; of quick runs also which way they lean."""
        if self.claim.experiment == EXACT and self.n:
            return f"{self.verdict}, exact"
        if self.verdict != "quick" or self.difference is None or self.half_width is None:
            return self.verdict
        ahead = _ahead(self.claim, self.difference)
        if abs(ahead) <= self.half_width:
            return "quick, open"
        return "quick, as claimed" if ahead > 0 else "quick, the other way"

    @property
    def why(self) -> str:
        return self.claim.why.get(self.verdict, "")


def examined(claim: Claim, outcomes: Outcomes, budget: Budget = "full") -> Finding:
    """One claim, before the correction for many tests."""
    own = budget == "full" or claim.experiment in WITHOUT_RUNS
    experiment = claim.experiment if own else claim.quick
    if not own and claim.quick_bound is not None:
        claim = replace(claim, bound=claim.quick_bound)
    if experiment is None:
        return Finding(claim, 0)
    label, beside = (claim.label(name, budget) for name in (claim.ours, claim.other))
    ours = _values(claim, experiment, label, outcomes)
    if claim.bound is not None:
        if claim.split is None:
            ours = outcomes.compared(experiment, claim.measure, (label,), claim.bound)[label]
        if claim.measure == DIVERGED:
            high = outcomes.above(experiment, label, claim.ceiling)
            ours = {seed: float(value or seed in high) for seed, value in ours.items()}
        other = dict.fromkeys(ours, claim.bound)
    elif claim.split is None and not claim.other_measure:
        both = outcomes.compared(experiment, claim.measure, (label, beside))
        ours, other = both[label], both[beside]
    else:
        then = replace(
            claim,
            measure=claim.other_measure or claim.measure,
            first=claim.first if claim.other_first is None else claim.other_first,
            last=claim.last if claim.other_last is None else claim.other_last,
        )
        other = _values(then, experiment, beside, outcomes)
    if experiment == EXACT:
        return _exact(claim, ours, other)
    lost = outcomes.diverged(experiment, label) - ours.keys()
    lost |= outcomes.diverged(experiment, beside) - other.keys()
    found = replace(paired(claim, ours, other), diverged=len(lost))
    if found.p is not None and outcomes.budget(experiment) != "full":
        return replace(found, p=None, contrary=None, verdict="quick")
    return found


def _exact(claim: Claim, ours: Mapping[int, float], other: Mapping[int, float]) -> Finding:
    """A claim on one number that comes out the same each time."""
    if not ours or not other:
        return Finding(claim, 0)
    difference = ours[0] - other[0]
    holds = claim.test != "steadier" and _is_right(claim, difference)
    return Finding(claim, 1, difference, verdict="holds" if holds else "contradicted")


def _values(claim: Claim, experiment: str, label: str, outcomes: Outcomes) -> dict[int, float]:
    if claim.split is None:
        return outcomes.final(experiment, label, claim.measure)
    if claim.last:
        window = (claim.split, claim.first, claim.last)
        return outcomes.window(experiment, label, claim.measure, *window, take=claim.take)
    curves = (experiment, claim.split)
    last = max((r.step for r in outcomes.rows if (r.experiment, r.split) == curves), default=0)
    window = (claim.split, math.ceil((1 - LAST) * last), last)
    found = outcomes.window(experiment, label, claim.measure, *window, take=claim.take)
    return {seed: found[seed] for seed in found.keys() - outcomes.diverged(experiment, label)}


def paired(claim: Claim, ours: Mapping[int, float], other: Mapping[int, float]) -> Finding:
    """A claim on the seeds that both variants have."""
    seeds = sorted(ours.keys() & other.keys())
    if not seeds:
        return Finding(claim, 0)
    a, b = [ours[seed] for seed in seeds], [other[seed] for seed in seeds]
    if claim.test == "steadier":
        a, b = ([abs(value - median(all_)) for value in all_] for all_ in (a, b))
    plain = [x - y for x, y in zip(a, b, strict=True)]
    n, mean = len(seeds), fmean(plain)
    if n < FEWEST:
        right = sum(_is_right(claim, value) for value in plain)
        return Finding(claim, n, mean, right=right, verdict="few seeds")
    rounding = NOISE * max(map(abs, [*ours.values(), *other.values()]))
    deviation, ahead = (
        value if abs(value) > rounding else 0.0 for value in (stdev(plain), _ahead(claim, mean))
    )
    effect = ahead / deviation if deviation else math.copysign(math.inf, ahead) if ahead else 0.0
    p, contrary = min(1.0, 2 * _tail(abs(effect), n)), None
    if claim.test in AGAINST_MARGIN:
        margins = 2 if claim.test == "same" else 1
        p, contrary = _tail(effect, n), min(1.0, margins * _tail(-effect, n))
    return Finding(
        claim,
        n,
        mean,
        float(t_quantile(n)) * deviation / math.sqrt(n),
        effect,
        sum(_is_right(claim, value) for value in plain),
        p=p,
        contrary=contrary,
    )


def _tail(effect: float, n: int) -> float:
    """The one-sided p of an effect over n seeds: by a t test, or a sign test if all agree."""
    if math.isinf(effect):
        return 0.5**n if effect > 0 else 1.0
    return t_tail(math.sqrt(n) * effect, n)


def _ahead(claim: Claim, difference: float) -> float:
    """How far a difference is on the side of the claim; below zero on the other."""
    return {
        "higher": difference,
        "lower": -difference,
        "steadier": -difference,
        "same": claim.margin - abs(difference),
        "no lower": claim.margin + difference,
    }[claim.test]


def _is_right(claim: Claim, difference: float) -> bool:
    """Whether a difference is as claimed; one that is as large as a margin is within it."""
    ahead = _ahead(claim, difference)
    return ahead >= 0 if claim.test in AGAINST_MARGIN else ahead > 0


def corrected(found: Iterable[Finding]) -> list[Finding]:
    """All claims with their p corrected by Holm, and their verdicts.

    Example:
        >>> claim = Claim("", "demo", "A", "B", "accuracy")
        >>> tests = [Finding(claim, 5, 1.0, p=p) for p in (0.01, 0.04, 0.03)]
        >>> [one.corrected for one in corrected(tests)]
        [0.03, 0.06, 0.06]
    """
    each = list(found)
    raised = iter(holm([p for one in each for p in (one.p, one.contrary) if p is not None]))
    return [
        _settled(one, *(None if p is None else next(raised) for p in (one.p, one.contrary)))
        for one in each
    ]


def _settled(one: Finding, p: float | None, contrary: float | None) -> Finding:
    """A claim with its verdict by its corrected p, and by that of the contrary if it has one."""
    if p is None:
        return one
    if contrary is not None and contrary < LEVEL:
        return replace(one, corrected=contrary, verdict="contradicted")
    if p >= LEVEL:
        return replace(one, corrected=p, verdict="not shown")
    assert one.difference is not None
    other_way = contrary is None and _ahead(one.claim, one.difference) < 0
    return replace(one, corrected=p, verdict="contradicted" if other_way else "holds")
