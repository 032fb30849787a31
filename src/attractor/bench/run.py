"""A whole benchmark: what is measured, for how long, and where."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from attractor.bench.cells import QUICK, SHAPES, cases, measure
from attractor.bench.drive import OnCase, drive
from attractor.bench.growth import AXES, LEARNING, SEARCHED, of_cell, of_starts, of_tasks
from attractor.bench.kept import Kept
from attractor.bench.machine import facts, key, load
from attractor.bench.timing import TURNS
from attractor.cells import CELLS
from attractor.checks import whole
from attractor.results.speed import Case, Found, Growth, Result, Shape, Timed, found_in, row
from attractor.runs.jobs import cores

SECONDS = 1.0
"""For each case of a whole benchmark."""
QUICK_SECONDS = 110.0
"""For all of a quick one."""
AGAIN = 5
"""Times as long for a case that is in doubt."""


class Grow(NamedTuple):
    """One measurement of growth that is to be made."""

    what: str
    axis: str
    of: Callable[[float, int], Growth]

    def __str__(self) -> str:
        return f"{self.what} against {self.axis}"


def bench(
    *,
    cells: Sequence[str] = (),
    shapes: Sequence[Shape] = (),
    threads: Sequence[int] = (),
    quick: bool = False,
    seconds: float = SECONDS,
    part: Path | None = None,
    on_case: OnCase = lambda done, total, name: None,
) -> Result:
    """Measure cells and growth, and say on what machine.

    Args:
        cells: keys of ``CELLS``; all if empty.
        shapes: those of `SHAPES` if empty, or of `QUICK`.
        threads: numbers of them; one and two if empty, and if there are two cores.
        quick: few shapes, and short enough to take two minutes in all.
        seconds: for each case, or for two turns if they take longer; quick shares two minutes.
        part: the file from which a benchmark that was stopped goes on; it is there until the end.
        on_case: is told how far it is.

    Example:
        >>> result = bench(cells=["gru"], shapes=[Shape(3, 2, 1, 4)], seconds=0.0, quick=True)
        >>> sorted({one.case.way for one in result.timed})
        ['forward', 'training']
    """
    numbers = [whole("threads", number, 1) for number in dict.fromkeys(threads)]
    numbers = numbers or ([1, 2] if cores() > 1 else [1])
    before, machine = load(), facts(numbers)
    todo = _todo(list(dict.fromkeys(cells)), list(dict.fromkeys(shapes)), numbers, quick)
    kept = Kept[Found](part, key() | {"seconds": seconds, "quick": quick}, row, found_in)
    known = {str(one) for one in kept.found}
    left = [one for name, one in todo.items() if name not in known]
    shares = _shares(len(left), min(QUICK_SECONDS, seconds * len(left))) if quick else None

    def do(config: Case | Grow, *, stop: Callable[[], bool]) -> None:
        share = seconds if shares is None else next(shares)
        kept.add(_measured(config, share, TURNS))

    left_out = drive(left, do, done=len(todo) - len(left), jobs=1, on_case=on_case)
    found = {str(one): one for one in kept.found}
    ordered = [found[name] for name in todo if name in found]
    if before:
        machine["load"] = f"{before} at the start, {load()} at the end"
    kept.forget()
    return Result(
        machine,
        tuple(one for one in ordered if isinstance(one, Timed)),
        tuple(one for one in ordered if isinstance(one, Growth)),
        tuple(left_out),
    )


def again(result: Result, cases: Collection[Case], seconds: float = SECONDS) -> Result:
    """Measure some cases once more, for `AGAIN` times as long; of each time the better one counts.

    Args:
        result: what was measured.
        cases: those of it that are in doubt.
        seconds: for each case at first.
    """
    return replace(
        result,
        timed=tuple(
            one.best(measure(one.case, AGAIN * seconds)) if one.case in cases else one
            for one in result.timed
        ),
    )


def _todo(
    cells: Sequence[str], shapes: Sequence[Shape], numbers: Sequence[int], quick: bool
) -> dict[str, Case | Grow]:
    """All that is to be measured, by name."""
    cells = cells or list(CELLS)
    shapes = shapes or (QUICK if quick else SHAPES)
    todo: list[Case | Grow] = [*cases(cells, shapes, numbers[:1] if quick else numbers)]
    if quick:  # what a second thread gains, seen where there is most to share
        todo += cases(_first(cells), [max(shapes, key=lambda one: one.batch)], numbers[1:])
    return {str(one): one for one in [*todo, *_growing(cells, quick)]}


def _measured(one: Case | Grow, seconds: float, turns: int) -> Found:
    return measure(one, seconds, turns) if isinstance(one, Case) else one.of(seconds, turns)


def _first(cells: Sequence[str]) -> list[str]:
    """The one cell that stands for all in a quick benchmark."""
    return ["lstm"] if "lstm" in cells else list(cells[:1])


def _growing(cells: Sequence[str], quick: bool) -> list[Grow]:
    """Every cell against every axis, strategies against tasks, a search; quick: fewer."""
    grown = _first(cells) if quick else cells
    strategies = LEARNING[:1] if quick else LEARNING
    return [
        *(Grow(cell, axis, partial(of_cell, cell, axis)) for cell in grown for axis in AXES),
        *(Grow(name, "tasks", partial(of_tasks, name)) for name in strategies),
        *([] if quick else [Grow(SEARCHED, "starts", of_starts)]),
    ]


def _shares(number: int, seconds: float) -> Iterator[float]:
    """Of the time that is left, an equal part for each case that is left."""
    end = time.perf_counter() + seconds
    for left in range(number, 0, -1):
        yield max(0.0, end - time.perf_counter()) / left
