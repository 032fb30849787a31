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

Where all :math:`d_s` are the same, as where no seed solves a task, :math:`\sigma` is zero and the t
test would be certain of anything. There the sign test counts: n seeds on one side have a p of
:math:`2^{-n}`, two-sided :math:`2^{1-n}`.

A seed has it right where its own :math:`d_s` is on the claimed side of zero, or of the margin.

All p are corrected by Holm over all claims that have results, so that a verdict does not depend on
the page it is read on. Beside a bound, in place of another variant, the same tests compare with
that number. What is computed exactly needs no test: its sign decides. A claim *holds* if its
corrected p is below 0.05 and the difference has the claimed sign; it is *contradicted* if the
difference has the other sign (for *same* and *no lower*: if the 95% interval lies beyond the
margin); else it is *not shown*. Fewer than three shared seeds, and runs shorter than the
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
from attractor.reproduction.outcomes import EXACT, WITHOUT_RUNS, Outcomes
from attractor.reproduction.targets import Budget, Claim
from attractor.reproduction.verdicts import FEWEST

LEVEL = 0.05

AGAINST_MARGIN = ("same", "no lower")
"""Tests that compare with a margin, one-sided."""

LAST = 0.2
"""The share of a run that counts as its end."""


@dataclass(frozen=True)
class Finding:
    """A claim and what the runs say of it.

    ``difference`` and ``half_width`` are of ours less the other's, in units of the measure;
    ``right`` counts the seeds on the side of the claim, and ``diverged`` runs without a number.
    """

    claim: Claim
    n: int
    difference: float | None = None
    half_width: float | None = None
    effect: float | None = None
    right: int = 0
    diverged: int = 0
    p: float | None = None
    corrected: float | None = None
    verdict: str = "not run"

    @property
    def told(self) -> str:
        """The verdict; of quick runs also which way they lean."""
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
        return replace(found, p=None, verdict="quick")
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
        return outcomes.window(experiment, label, claim.measure, *window, swing=claim.swing)
    curves = (experiment, claim.split)
    last = max((r.step for r in outcomes.rows if (r.experiment, r.split) == curves), default=0)
    window = (claim.split, math.ceil((1 - LAST) * last), last)
    found = outcomes.window(experiment, label, claim.measure, *window, swing=claim.swing)
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
        return Finding(claim, n, mean, verdict="few seeds")
    deviation = stdev(plain)
    ahead = _ahead(claim, mean)
    effect = ahead / deviation if deviation else math.copysign(math.inf, ahead) if ahead else 0.0
    one_sided = claim.test in AGAINST_MARGIN
    tail = _tail(effect if one_sided else abs(effect), n)
    return Finding(
        claim,
        n,
        mean,
        float(t_quantile(n)) * deviation / math.sqrt(n),
        effect,
        sum(_is_right(claim, value) for value in plain),
        p=tail if one_sided else min(1.0, 2 * tail),
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
    tested = [place for place, one in enumerate(each) if one.p is not None]
    raised = holm([one.p for one in each if one.p is not None])
    for place, p in zip(tested, raised, strict=True):
        each[place] = replace(each[place], corrected=p)
    return [_settled(one) if one.corrected is not None else one for one in each]


def _settled(one: Finding) -> Finding:
    assert one.corrected is not None
    assert one.difference is not None
    if one.claim.test == "same":
        beyond = abs(one.difference) - (one.half_width or 0.0) > one.claim.margin
        verdict = "contradicted" if beyond else "not shown"
        return replace(one, verdict="holds" if one.corrected < LEVEL else verdict)
    if one.claim.test == "no lower":
        below = one.difference + (one.half_width or 0.0) < -one.claim.margin
        verdict = "contradicted" if below else "not shown"
        return replace(one, verdict="holds" if one.corrected < LEVEL else verdict)
    if one.corrected >= LEVEL:
        return replace(one, verdict="not shown")
    lower = one.claim.test in ("lower", "steadier")
    return replace(one, verdict="holds" if (one.difference < 0) == lower else "contradicted")
