"""The verdict on a published number. The rule is stated here once.

Our mean over seeds has a 95% interval of half width h by Student's t. A published number has the
rounding of its last printed digit, and a target a tolerance, in the unit of the number.

- *quoted*: another paper's number. *quick*: a run of ours was shorter than the document's. *few
  seeds*: fewer than three. None of these is a verdict.
- What is computed exactly has no interval: it *agrees* if it rounds to the number.
- *agrees*: the number, as rounded, is in the interval, and h is at most the tolerance.
- *undecided*: it is in the interval, but h is larger than the tolerance: almost anything would be.
- *close*: it is outside, but at most the tolerance away from our mean.
- *better* and *worse*: it is further away; ours is better or worse than published. *differs* if
  the number has no direction.

What a document prints after a plus-minus sign is shown, and takes no part; beside it stands what
ours have over the tasks of a stream, which is what some documents print.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, stdev

from attractor.estimates import Estimate, estimate
from attractor.reproduction.outcomes import EXACT, SIMULATED, Outcomes
from attractor.reproduction.published import Number, of_target
from attractor.reproduction.targets import Budget, Target

FEWEST = 3
"""Seeds for a verdict."""


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


def judge(
    number: Number, values: Mapping[int, float], tolerance: float, *, full: bool = True
) -> tuple[Estimate | None, str]:
    """Ours as a mean over seeds, in the unit of the number, and the verdict.

    Args:
        number: as published.
        values: our measure by seed.
        tolerance: of the target, in the unit of the number.
        full: whether the runs had the document's budget.

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


def judged(target: Target, outcomes: Outcomes, budget: Budget = "full") -> list[Judged]:
    """Every published number of a target beside ours."""
    return [_judged(target, number, outcomes, budget) for number in of_target(target.key)]


def _judged(target: Target, number: Number, outcomes: Outcomes, budget: Budget) -> Judged:
    source = next((one for one in target.sources if one.has(number)), None)
    if not number.quoted and (found := _without_runs(target, number, outcomes)):
        return found
    if source is None:
        return Judged(number, None, None, "quoted" if number.quoted else "no configuration")
    experiment, label = source.experiment(budget), source.label(number.row, budget)
    if experiment is None:
        return Judged(number, label, None, "not run")
    measure, _, of = source.columns[number.column].partition("/")
    values = outcomes.final(experiment, label, measure)
    if of and values and not number.quoted:
        return Judged(number, label, None, "no interval", _single(number, values, of))
    full = outcomes.budget(experiment) == "full"
    ours, verdict = judge(number, values, target.tolerance, full=full)
    spread = outcomes.over_tasks(experiment, label) if number.spread is not None else {}
    over_tasks = number.scale * fmean(spread.values()) if ours and spread else None
    lost = outcomes.diverged(experiment, label) - values.keys()
    return Judged(number, label, ours, verdict, over_tasks=over_tasks, diverged=len(lost))


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
