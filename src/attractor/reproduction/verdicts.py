"""The verdict on a published number. The rule is stated here once.

Our mean over seeds has a 95% interval of half width h by Student's t. A published number has the
rounding of its last printed digit, and a target a tolerance, in the unit of the number.

- *quoted*: another paper's number. *quick*: a run of ours was shorter than the document's. *few
  seeds*: fewer than three. None of these is a verdict.
- What is computed exactly has no interval: it *agrees* if it rounds to the number.
- *as set*, *set otherwise*: a setting of a run, beside that of our full configuration.
- *not solved*: a number of updates that is not known, because a run did not solve its task. *no
  interval*: the best of several runs, their deviation, a p. *not judged*: with the reason.
- *agrees*: the number, as rounded, is in the interval, and h is at most the tolerance.
- *undecided*: it is in the interval, but h is larger than the tolerance: almost anything would be.
- *close*: it is outside, but at most the tolerance away from our mean.
- *better* and *worse*: it is further away; ours is better or worse than published. *differs* if
  the number has no direction.
- Of a number that is a bound: *agrees* if all of the interval is on the right side of it, *worse*
  or *differs* if none is, else *undecided*. A p below a bound *agrees* if ours is below it too, and
  the difference has the sign that is claimed.

What a document prints after a plus-minus sign is shown, and takes no part; beside it stands what
ours have over the tasks of a stream, which is what some documents print.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from statistics import fmean, stdev, variance
from typing import Literal

from attractor.estimates import Estimate, estimate, t_tail
from attractor.reproduction.computed.settings import CONFIG, configured, is_configured
from attractor.reproduction.outcomes import EXACT, SIMULATED, Outcomes
from attractor.reproduction.published import Number, of_target
from attractor.reproduction.targets import LEFT, Budget, Source, Target

FEWEST = 3
"""Seeds for a verdict."""

Side = Literal["below", "above"]


@dataclass(frozen=True)
class Judged:
    """A published number, ours in its unit, and the verdict."""

    number: Number
    label: str | None
    ours: Estimate | None
    verdict: str
    single: float | None = None
    """Ours where it is not a mean over seeds, such as the best of them."""
    over_tasks: float | None = None
    """In the unit of the number, 1.96 standard deviations over a stream's tasks: mean of seeds."""
    diverged: int = 0
    """Runs that have no number."""
    unsolved: int = 0
    """Seeds of which it is not known how many updates it takes."""
    why: str = ""
    """What stands in the way of a verdict."""


def judge(
    number: Number,
    values: Mapping[int, float],
    tolerance: float,
    *,
    full: bool = True,
    side: Side | None = None,
) -> tuple[Estimate | None, str]:
    """Ours as a mean over seeds, in the unit of the number, and the verdict.

    Args:
        number: as published.
        values: our measure by seed.
        tolerance: of the target, in the unit of the number.
        full: whether the runs had the document's budget.
        side: on which side of the number ours has to be, if that is a bound.

    Example:
        >>> number = Number("t", "Table 1", "A", "ACC", 82.19, "%", "higher", "1")
        >>> judge(number, {0: 0.822, 1: 0.824, 2: 0.821}, tolerance=1.0)[1]
        'agrees'
    """
    if number.quoted or not values:
        return None, "quoted" if number.quoted else "not run"
    ours = estimate([number.scale * value for value in values.values()])
    if not full:
        return ours, "quick"
    if ours.n < FEWEST or ours.half_width is None:
        return ours, "few seeds"
    if side is not None:
        return ours, _bounded(number, ours.mean, ours.half_width, side)
    return ours, _verdict(number, ours, ours.half_width, tolerance)


def _verdict(number: Number, ours: Estimate, half: float, tolerance: float) -> str:
    away = ours.mean - number.value
    if abs(away) <= half + number.rounding * (1 + 1e-9):
        return "agrees" if half <= tolerance else "undecided"
    if abs(away) <= tolerance:
        return "close"
    if number.better == "none":
        return "differs"
    return "better" if (away > 0) == (number.better == "higher") else "worse"


def _bounded(number: Number, mean: float, half: float, side: Side) -> str:
    inside = number.value - mean if side == "below" else mean - number.value
    if inside > half:
        return "agrees"
    return "undecided" if inside >= -half else _beyond(number)


def _beyond(number: Number) -> str:
    return "differs" if number.better == "none" else "worse"


def judged(target: Target, outcomes: Outcomes, budget: Budget = "full") -> list[Judged]:
    """Every published number of a target beside ours."""
    return [_judged(target, number, outcomes, budget) for number in of_target(target.key)]


def _judged(target: Target, number: Number, outcomes: Outcomes, budget: Budget) -> Judged:
    if number.quoted:
        return Judged(number, None, None, "quoted")
    if found := _without_runs(target, number, outcomes):
        return found
    source = next((one for one in target.sources if one.has(number)), None)
    if source is None:
        why = target.unjudged.get(number.column, "")
        return Judged(number, None, None, "not judged", why=why)
    if is_configured(source.columns[number.column]):
        return _as_configured(source, number, target.tolerance)
    experiment, label = source.experiment(budget), source.label(number.row, budget)
    if experiment is None:
        return Judged(number, label, None, "not run")
    return _of_runs(target.tolerance, source, number, outcomes, experiment, budget)


def _of_runs(
    tolerance: float,
    source: Source,
    number: Number,
    outcomes: Outcomes,
    experiment: str,
    budget: Budget,
) -> Judged:
    measure, _, of = source.columns[number.column].partition("/")
    label, other = source.label(number.row, budget), source.other(number.row, budget)
    ours = _values(source, number, outcomes, experiment, label, measure)
    lost = outcomes.diverged(experiment, label) - ours.keys()
    unsolved = _unsolved(outcomes, experiment, label, measure)
    full = outcomes.budget(experiment) == "full"
    side = source.bounds.get(number.column)
    if other is None:
        values = ours
    else:
        theirs = _values(source, number, outcomes, experiment, other, measure)
        lost |= outcomes.diverged(experiment, other) - theirs.keys()
        unsolved |= _unsolved(outcomes, experiment, other, measure)
        if of == "p":
            return _tested(source, number, label, ours, theirs, full=full)
        values = related(source.relation, ours, theirs)
    values = {seed: value for seed, value in values.items() if seed not in unsolved}
    if of and values:
        return Judged(number, label, None, "no interval", _single(number, values, of))
    mean, verdict = judge(number, values, tolerance, full=full, side=side)
    if unsolved and full:
        verdict = "not solved"
    spread = outcomes.over_tasks(experiment, label) if number.spread is not None else {}
    over_tasks = number.scale * fmean(spread.values()) if mean and spread else None
    return Judged(
        number,
        label,
        mean,
        verdict,
        over_tasks=over_tasks,
        diverged=len(lost),
        unsolved=len(unsolved),
    )


def _values(
    source: Source, number: Number, outcomes: Outcomes, experiment: str, label: str, measure: str
) -> dict[int, float]:
    """By seed, the measure of a variant, at the end of its runs or on the way."""
    if measure == LEFT:
        pruned = outcomes.final(experiment, label, "sparsity")
        counts = outcomes.final(experiment, label, "parameters")
        return {seed: n * (1 - pruned.get(seed, 0.0)) / 1e3 for seed, n in counts.items()}
    if not source.split:
        return outcomes.final(experiment, label, measure)
    if source.last:
        window = (source.split, source.first, source.last)
        return outcomes.window(experiment, label, measure, *window)
    highest = number.better == "higher"
    return outcomes.best(experiment, label, measure, source.split, highest=highest)


def _unsolved(outcomes: Outcomes, experiment: str, label: str, measure: str) -> set[int]:
    """The seeds of a variant for which the number of updates it takes is not known."""
    if measure != "steps_to_solve":
        return set()
    solved = outcomes.final(experiment, label, "solved")
    return {seed for seed, value in solved.items() if not value}


def related(
    relation: str, ours: Mapping[int, float], other: Mapping[int, float]
) -> dict[int, float]:
    """By seed that both have, how ours stands to the other.

    Example:
        >>> related("removed", {0: 3.0, 1: 1.0}, {0: 4.0})
        {0: 0.25}
    """
    pairs = {seed: (ours[seed], other[seed]) for seed in sorted(ours.keys() & other.keys())}
    if relation == "difference":
        return {seed: a - b for seed, (a, b) in pairs.items()}
    ratios = {seed: a / b for seed, (a, b) in pairs.items()}
    return ratios if relation == "ratio" else {seed: 1 - r for seed, r in ratios.items()}


def _tested(
    source: Source,
    number: Number,
    label: str,
    ours: Mapping[int, float],
    other: Mapping[int, float],
    *,
    full: bool,
) -> Judged:
    """The p of two variants, by the test of the document."""
    if min(len(ours), len(other)) < FEWEST:
        return Judged(number, label, None, "few seeds" if ours and other else "not run")
    p, ahead = independent(ours.values(), other.values())
    if not full:
        return Judged(number, label, None, "quick", p)
    if number.column not in source.bounds:
        return Judged(number, label, None, "no interval", p)
    claimed = (ahead > 0) == (source.test == "higher")
    return Judged(number, label, None, "agrees" if claimed and p < number.value else "worse", p)


def independent(a: Collection[float], b: Collection[float]) -> tuple[float, float]:
    """Student's t test of two independent samples: the two-sided p, and the difference.

    Example:
        >>> p, difference = independent([1.0, 2.0, 3.0], [2.0, 3.0, 4.0])
        >>> round(p, 3), difference
        (0.288, -1.0)
    """
    n, m = len(a), len(b)
    difference = fmean(a) - fmean(b)
    pooled = ((n - 1) * variance(a) + (m - 1) * variance(b)) / (n + m - 2)
    if not pooled:
        return float(difference == 0), difference
    t = difference / (pooled * (1 / n + 1 / m)) ** 0.5
    return 2 * t_tail(abs(t), n + m - 1), difference


def _as_configured(source: Source, number: Number, tolerance: float) -> Judged:
    """A number that the full configuration tells: its setting, or what its task works out."""
    measure, label = source.columns[number.column], source.label(number.row)
    assert source.full is not None
    value = number.scale * configured(source.full, label, measure)
    if measure.startswith(CONFIG):
        verdict = "as set" if value == number.value else "set otherwise"
        return Judged(number, label, None, verdict, value)
    return Judged(number, label, None, _verdict(number, estimate([value]), 0.0, tolerance), value)


def _without_runs(target: Target, number: Number, outcomes: Outcomes) -> Judged | None:
    """A number that is computed, under the row and the column of the document."""
    if simulated := outcomes.final(SIMULATED, number.row, number.column):
        return Judged(number, number.row, *judge(number, simulated, target.tolerance))
    if exact := outcomes.final(EXACT, number.row, number.column):
        value = number.scale * exact[0]
        verdict = _verdict(number, estimate([value]), 0.0, target.tolerance)
        return Judged(number, number.row, None, verdict, value)
    return None


def _single(number: Number, values: Mapping[int, float], of: str) -> float | None:
    scaled = [number.scale * value for value in values.values()]
    if of == "best":
        return max(scaled) if number.better == "higher" else min(scaled)
    return stdev(scaled) if len(scaled) > 1 else None
