"""What runs came to as one table: a line for each number, kept compressed in an open format."""

import csv
import gzip
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Literal, NamedTuple

from attractor.errors import InputError
from attractor.files import write_atomic
from attractor.runs.read import Run

STORED = Path(__file__).with_name("stored")
"""The results that come with the package: a table for each experiment or computed target."""

END = "end"
"""The split under which a run's final measures stand; those on the way have their own."""

DIVERGED = "diverged"
"""In the place of a measure: 1 for a run that had no end but this. Others have no such row."""

_TASK = re.compile(r"task_\d+")

EXACT = "computed"
"""In the place of an experiment: numbers that come out the same each time, without runs."""

SIMULATED = "simulated"
"""The same for numbers over seeds, which have an interval."""

WITHOUT_RUNS = (EXACT, SIMULATED)

LONGEST = 100
"""Rows of a split that are kept of one run; more are thinned evenly."""

Take = Literal["mean", "median", "swing"]
"""What is taken of logged rows: their mean, their median where a few are far above the rest, or the
mean of how much they change, up or down, from one to the next."""

EXTREMES: dict[str, Callable[[Iterable[float]], float]] = {"least": min, "most": max}
"""After the name of a split that was thinned: the one row of it with that value."""


class Row(NamedTuple):
    """One number of one run."""

    experiment: str
    budget: str
    label: str
    seed: int
    run: str
    split: str
    step: int
    measure: str
    value: float


class Outcomes:
    """Numbers of runs by experiment, variant and seed.

    Args:
        rows: of any number of runs.

    Example:
        >>> rows = [Row("demo", "full", "A", seed, "a", END, 5, "accuracy", 0.5) for seed in (1, 0)]
        >>> Outcomes(rows).final("demo", "A", "accuracy")
        {0: 0.5, 1: 0.5}
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = sorted(dict.fromkeys(rows))
        self._index: dict[tuple[str, str, str, str], dict[int, dict[int, float]]] = {}
        self._lost: dict[tuple[str, str], set[int]] = {}
        for row in self.rows:
            key = (row.experiment, row.label, row.split, row.measure)
            self._index.setdefault(key, {}).setdefault(row.seed, {})[row.step] = row.value
            if row.split == END and (row.measure == DIVERGED or not math.isfinite(row.value)):
                self._lost.setdefault(key[:2], set()).add(row.seed)

    def __bool__(self) -> bool:
        return bool(self.rows)

    def final(self, experiment: str, label: str, measure: str) -> dict[int, float]:
        """By seed, the measure that the runs of a variant ended with, where that is finite.

        Every run that ended has a number for ``diverged``: 0 if it did not.
        """
        found = self._index.get((experiment, label, END, measure), {})
        ends = {seed: next(iter(values.values())) for seed, values in sorted(found.items())}
        ends = {seed: value for seed, value in ends.items() if math.isfinite(value)}
        if measure == DIVERGED:
            ended = {row.seed for row in self._ended(experiment, label)}
            ends = {seed: ends.get(seed, 0.0) for seed in sorted(ended)}
        return ends

    def _ended(self, experiment: str, label: str) -> Iterator[Row]:
        wanted = (experiment, label, END)
        return (row for row in self.rows if (row.experiment, row.label, row.split) == wanted)

    def compared(
        self, experiment: str, measure: str, labels: Iterable[str], bound: float = 0.0
    ) -> dict[str, dict[int, float]]:
        """By variant and seed, what runs ended with, such that variants compare.

        A run that did not solve its task counts as the longest of all of them, so that there is no
        difference where neither of two solved it; beside a `bound` it is not below that, however
        early it diverged. One that was ended sooner than another solved the task from the same
        seed could have done so too: it has no number, unless it diverged.
        """
        found = {label: self.final(experiment, label, measure) for label in labels}
        if measure == "steps_to_solve":
            longest = max([bound, *(v for values in found.values() for v in values.values())])
            latest = self._latest(experiment, found)
            for label, values in found.items():
                lost = self.diverged(experiment, label)
                for seed, solved in self.final(experiment, label, "solved").items():
                    if solved:
                        continue
                    if seed not in lost and values.get(seed, longest) < latest.get(seed, 0.0):
                        del values[seed]
                    else:
                        values[seed] = longest
        return found

    def _latest(
        self, experiment: str, taken: Mapping[str, Mapping[int, float]]
    ) -> dict[int, float]:
        """By seed, the updates of the last variant that solved its task."""
        latest: dict[int, float] = {}
        for label, steps in taken.items():
            for seed, solved in self.final(experiment, label, "solved").items():
                if solved:
                    latest[seed] = max(latest.get(seed, 0.0), steps[seed])
        return latest

    def diverged(self, experiment: str, label: str) -> set[int]:
        """The seeds whose runs diverged, and so have no other measure but whether they solved.

        With them are those that ended with a number that is not finite; they may have others.
        """
        return set(self._lost.get((experiment, label), ()))

    def above(self, experiment: str, label: str, ceiling: float) -> set[int]:
        """The seeds whose runs ended with a test loss above this."""
        losses = self.final(experiment, label, "loss")
        return {seed for seed, loss in losses.items() if loss > ceiling}

    def over_tasks(self, experiment: str, label: str) -> dict[int, float]:
        """By seed, 1.96 standard deviations over the tasks of a stream, after the last of them."""
        found: dict[int, dict[str, tuple[int, float]]] = {}
        for (name, variant, split, measure), seeds in self._index.items():
            if (name, variant, split) == (experiment, label, "test") and _TASK.fullmatch(measure):
                for seed, values in seeds.items():
                    found.setdefault(seed, {})[measure] = max(values.items())
        each = {seed: [value for _, value in last.values()] for seed, last in found.items()}
        return {s: 1.96 * stdev(last) for s, last in sorted(each.items()) if len(last) > 1}

    def series(
        self,
        experiment: str,
        label: str,
        measure: str,
        split: str,
        first: float = 0,
        last: float = math.inf,
    ) -> dict[int, list[float]]:
        """By seed, what was logged from one step to another, both included, in its order."""
        found = self._index.get((experiment, label, split, measure), {})
        return {
            seed: [value for step, value in sorted(values.items()) if first <= step <= last]
            for seed, values in sorted(found.items())
        }

    def best(
        self, experiment: str, label: str, measure: str, split: str, *, highest: bool
    ) -> dict[int, float]:
        """By seed, the best of all that was logged, whether or not that row was kept."""
        kind = "most" if highest else "least"
        logged = self.series(experiment, label, measure, split)
        extreme = self.series(experiment, label, measure, f"{split} {kind}")
        return {
            seed: EXTREMES[kind]([*values, *extreme.get(seed, [])])
            for seed, values in logged.items()
        }

    def window(
        self,
        experiment: str,
        label: str,
        measure: str,
        split: str,
        first: int,
        last: int,
        *,
        take: Take = "mean",
    ) -> dict[int, float]:
        """By seed, one number for what was logged from one step to another, both included.

        A run that diverged by the last of these steps has none: it would be of another part. One
        that logged there what is not finite has none either.
        """
        inside = self.series(experiment, label, measure, split, first, last)
        for seed, steps in self._index.get((experiment, label, END, DIVERGED), {}).items():
            if max(steps) <= last:
                inside.pop(seed, None)
        if take == "swing":
            inside = {seed: [abs(b - a) for a, b in pairwise(v)] for seed, v in inside.items()}
        middle = median if take == "median" else fmean
        return {s: middle(v) for s, v in inside.items() if v and all(map(math.isfinite, v))}

    def budget(self, experiment: str) -> str | None:
        """The budget of an experiment's runs; ``None`` if there are none."""
        return next((row.budget for row in self.rows if row.experiment == experiment), None)

    def joined(self, other: "Outcomes") -> "Outcomes":
        """These and those of another; where both have a run of one seed, the other's stands."""
        newer = {(row.experiment, row.label, row.seed) for row in other.rows}
        kept = [row for row in self.rows if (row.experiment, row.label, row.seed) not in newer]
        return Outcomes([*kept, *other.rows])


def of_runs(runs: Iterable[Run], wanted: Iterable[tuple[str, str]]) -> Outcomes:
    """The numbers of ended runs: what they ended with, and what they logged on the way.

    Args:
        runs: those that have not ended, those of other variants, and those that an error ended,
            which says nothing of a network, are left out. One that diverged has no final measures;
            a task that it was to solve, it has not solved.
        wanted: experiments and labels.
    """
    wanted = set(wanted)
    rows: list[Row] = []
    for run in runs:
        if run.status == "unfinished" or (run.experiment, run.label) not in wanted:
            continue
        if run.status == "failed" and "step" not in run.outcome:  # as of one that diverged
            continue
        head = (run.experiment, run.budget, run.label, run.seed, run.folder.name)
        told = run.outcome.get("steps") or run.outcome.get("step")
        steps = told if isinstance(told, int) else 0  # a file may have been written over
        ended = run.test if run.status == "done" else _failed(run, steps)
        rows += [Row(*head, END, steps, name, value) for name, value in ended.items()]
        for name in ("parameters", "seconds"):
            if isinstance(value := run.outcome.get(name), int | float):
                rows.append(Row(*head, END, steps, name, float(value)))
        for split in ("train", "valid", "test"):
            names = {n for row in run.rows if row["split"] == split for n in row}
            for name in names - {"step", "split"}:
                parts = _thinned(split, list(run.series(split, name).items()))
                rows += [Row(*head, part, step, name, v) for part, (step, v) in parts]
    return Outcomes(rows)


def _thinned(
    split: str, series: list[tuple[int, float]]
) -> Iterator[tuple[str, tuple[int, float]]]:
    """Rows with the split to keep them under: evenly taken, and the extremes of a longer series.

    Extremes have splits of their own, so that means over what is kept remain those of even rows.
    """
    every = max(1, -(-len(series) // LONGEST))
    yield from ((split, row) for row in series[::every])
    if every > 1:
        values = [value for _, value in series]
        for kind, choose in EXTREMES.items():
            yield f"{split} {kind}", series[values.index(choose(values))]


def _failed(run: Run, steps: int) -> dict[str, float]:
    train = run.config.get("train")
    asked = isinstance(train, dict) and train.get("stop_below") is not None
    return {DIVERGED: 1.0} | ({"solved": 0.0, "steps_to_solve": float(steps)} if asked else {})


def ends(outcomes: Outcomes) -> Outcomes:
    """What runs ended with, without what they logged on the way."""
    return Outcomes(row for row in outcomes.rows if row.split == END)


def write(outcomes: Outcomes, path: Path) -> None:
    """Keep numbers as a compressed table; the same numbers give the same file, byte for byte."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(Row._fields)
    table.writerows([*row[:-1], f"{row.value:.7g}"] for row in outcomes.rows)
    raw = io.BytesIO()
    with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as file:
        file.write(text.getvalue().encode())
    write_atomic(path, raw.getvalue())


def read(path: Path) -> Outcomes:
    """Numbers that `write` kept."""
    try:
        lines = list(csv.reader(io.StringIO(gzip.decompress(path.read_bytes()).decode())))
        if tuple(lines[0]) != Row._fields:
            raise ValueError(f"columns {lines[0]}")
        return Outcomes(
            Row(a, b, c, int(seed), run, split, int(step), measure, float(value))
            for a, b, c, seed, run, split, step, measure, value in lines[1:]
        )
    except (OSError, EOFError, ValueError, IndexError) as error:
        raise InputError(
            f"expected a table of results in {path}, but could not read it ({error}). "
            "Try making it again with `attractor reproduce TARGET`."
        ) from error


@cache
def stored(name: str) -> Outcomes:
    """The numbers that come with the package.

    Args:
        name: of an experiment, or ``SLUG.computed`` for what is computed of a target.

    Example:
        >>> len(stored("rows-mnist").final("rows-mnist", "MNIST, LSTM 32", "accuracy"))
        40
    """
    path = STORED / f"{name}.csv.gz"
    return read(path) if path.is_file() else Outcomes([])
