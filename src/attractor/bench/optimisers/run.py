"""A whole benchmark of optimisers: every contender on every task, and what it came to."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from attractor.bench.drive import OnCase, drive
from attractor.bench.machine import facts
from attractor.bench.optimisers.contenders import CONTENDERS, contender, rules, without_weights
from attractor.bench.optimisers.pace import UNIT, paces, scaled
from attractor.bench.optimisers.tasks import TASKS, horizons_of
from attractor.bench.optimisers.trial import Case, measure, outcome
from attractor.checks import whole
from attractor.results.standing import Standing
from attractor.runs.jobs import cores

SEEDS, QUICK_SEEDS = range(5), range(3)


def bench(
    folder: Path,
    *,
    tasks: Sequence[str] = (),
    only: Sequence[str] = (),
    horizons: Sequence[int] = (),
    seeds: Sequence[int] = (),
    quick: bool = False,
    by_time: bool = False,
    jobs: int | None = None,
    on_case: OnCase = lambda done, total, name: None,
) -> Standing:
    """Compare optimisers, and keep every training in a folder, from which it goes on.

    Args:
        folder: for what is done.
        tasks: keys of `TASKS`; all if empty.
        only: contenders, by hand or learned; all if empty.
        horizons: updates; those of each task if empty.
        seeds: of the trainings that count; five if empty, of the quick benchmark three.
        quick: short trainings, ten minutes in all.
        by_time: each optimiser has as many updates as take the time that `adam-cosine` takes for
            the horizon, by the processor and measured in turns.
        jobs: processes; as many as there are cores if None.
        on_case: is told how far it is.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     asked = {"tasks": ["quadratic"], "only": ["sgd"], "horizons": [5]}
        ...     found = bench(Path(folder), **asked, quick=True, jobs=1)
        >>> found.contenders, len(found.outcomes[0].losses)
        (['sgd'], 3)
    """
    cases = all_cases(tasks, only, horizons, seeds, quick=quick)
    if by_time:
        cases = in_equal_time(cases, folder)
    left = [case for case in cases if outcome(case, folder) is None]
    refused = drive(
        left,
        partial(measure, folder=folder),
        done=len(cases) - len(left),
        jobs=jobs or cores(),
        on_case=on_case,
    )
    outcomes = [outcome(case, folder) for case in cases]
    return Standing(
        facts([]),
        quick,
        {case.task: TASKS[case.task].title for case in cases},
        cases[0].seeds,
        tuple(one for one in outcomes if one is not None),
        (*([] if only else without_weights()), *refused),
        by_time,
    )


def all_cases(
    tasks: Sequence[str],
    only: Sequence[str],
    horizons: Sequence[int],
    seeds: Sequence[int],
    *,
    quick: bool,
) -> list[Case]:
    """Every cell of the table that is asked for."""
    names = list(dict.fromkeys(only)) or [*CONTENDERS, *rules()]
    for name in names:
        contender(name)
    chosen = tuple(dict.fromkeys(seeds)) or tuple(QUICK_SEEDS if quick else SEEDS)
    for seed in chosen:
        whole("seed", seed, 0)
    updates = [whole("horizon", number, 1) for number in dict.fromkeys(horizons)]
    return [
        Case(task, horizon, name, chosen, quick)
        for task in list(dict.fromkeys(tasks)) or TASKS
        for horizon in horizons_of(task, quick=quick, asked=updates)
        for name in names
    ]


def in_equal_time(cases: Sequence[Case], folder: Path) -> list[Case]:
    """The cells with as many updates as take the time of `UNIT` for the horizon."""
    found = []
    for task in dict.fromkeys(case.task for case in cases):
        own = [case for case in cases if case.task == task]
        names = list(dict.fromkeys([UNIT, *(case.contender for case in own)]))
        took = paces(task, names, quick=own[0].quick, folder=folder)
        for case in own:
            updates = scaled(case.horizon, took.get(case.contender, took[UNIT]), took[UNIT])
            found.append(case._replace(updates=updates))
    return found
