"""A whole benchmark: what is measured, for how long, and where."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial

import torch

from attractor.bench.cells import QUICK, SHAPES, Case, Shape, Timed, cases, measure
from attractor.bench.growth import AXES, LEARNING, SEARCHED, Growth, of_cell, of_starts, of_tasks
from attractor.bench.result import Result
from attractor.bench.room import has_room
from attractor.bench.timing import TURNS, matmul_peak, threads
from attractor.cells import CELLS
from attractor.runs.environment import environment
from attractor.runs.jobs import cores
from attractor.runs.memory import allocator

SECONDS = 2.0
"""For each case of a whole benchmark."""
QUICK_SECONDS = 110.0
"""For all of a quick one."""

OnCase = Callable[[int, int, str], None]
"""Told, before each case, how many are done, how many there are, and what comes."""


def bench(
    *,
    cells: Sequence[str] = (),
    shapes: Sequence[Shape] = (),
    quick: bool = False,
    seconds: float = SECONDS,
    on_case: OnCase = lambda done, total, name: None,
) -> Result:
    """Measure cells and growth, and say on what machine.

    Args:
        cells: keys of ``CELLS``; all if empty.
        shapes: those of `SHAPES` if empty, or of `QUICK`.
        quick: few shapes, and short enough to take two minutes in all.
        seconds: for each case, unless quick.
        on_case: is told how far it is.

    Example:
        >>> result = bench(cells=["gru"], shapes=[Shape(3, 2, 1, 4)], seconds=0.0, quick=True)
        >>> sorted({one.case.way for one in result.timed})
        ['forward', 'training']
    """
    cells = list(dict.fromkeys(cells)) or list(CELLS)
    shapes = list(dict.fromkeys(shapes)) or list(QUICK if quick else SHAPES)
    numbers = [1, 2] if cores() > 1 else [1]
    machine = facts(numbers)
    todo: list[Case | Grow] = [*cases(cells, shapes, [1] if quick else numbers)]
    if quick:  # what a second thread gains, seen where there is most to share
        todo += cases(_first(cells), [max(shapes, key=lambda one: one.batch)], numbers[1:])
    todo += _growing(cells, quick)
    timed: list[Timed] = []
    growth: list[Growth] = []
    left_out: list[str] = []
    turns = 1 if quick else TURNS
    shares = _shares(len(todo), min(QUICK_SECONDS, seconds * len(todo))) if quick else None
    for done, one in enumerate(todo):
        on_case(done, len(todo), str(one))
        share = seconds if shares is None else next(shares)
        if isinstance(one, Grow):
            growth.append(one(share, turns))
        elif has_room(one):
            timed.append(measure(one, share, turns))
        else:
            left_out.append(str(one))
    on_case(len(todo), len(todo), "")
    return Result(machine, tuple(timed), tuple(growth), tuple(left_out))


def facts(numbers_of_threads: Iterable[int]) -> dict[str, str]:
    """The machine: what decides about times."""
    here = environment(torch.get_num_threads())
    found = {name: str(here[name]) for name in ("cpu", "processor", "system", "python", "torch")}
    found |= {"attractor": str(here["attractor"]), "allocator": allocator()}
    for number in numbers_of_threads:
        with threads(number):
            peak = matmul_peak()
        found[f"matmul peak, {number} thread{'s' if number > 1 else ''}"] = f"{peak:.0f} GFLOP/s"
    return found | {"when": datetime.now(UTC).isoformat(timespec="seconds")}


class Grow:
    """One measurement of growth that is to be made."""

    def __init__(self, what: str, axis: str, of: Callable[[float, int], Growth]) -> None:
        self.name, self.of = f"{what} against {axis}", of

    def __call__(self, seconds: float, turns: int) -> Growth:
        return self.of(seconds, turns)

    def __str__(self) -> str:
        return self.name


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
