"""Tables of variants by measures on the pages, made from stored results, of targets or not."""

import math
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

from attractor.estimates import estimate
from attractor.experiments.table import load
from attractor.reproduction.outcomes import Outcomes, stored
from attractor.reproduction.published import of_target
from attractor.results.contrast import contrast
from attractor.results.table import markdown

Show = Literal["mean", "seeds", "median", "count", "means", "deviations"]

LESS = " less "
"""Between two variants: what is shown is of the first less the second."""


@dataclass(frozen=True)
class Column:
    """What a column shows of each row.

    Args:
        head: its heading.
        measure: as runs end with it; empty for a column that is ``published`` alone.
        variants: the label, where ``{}`` is the key of the row: ``{}, 200`` for the method with 200
            memories. Of several the first that the experiment has. ``A less B`` shows what A has
            more than B, seed by seed.
        experiment: if it is not that of the table.
        show: ``mean`` with its 95% interval; ``seeds``, the value of each seed in their order;
            ``median`` of the updates to solve a task, with the first and the last, where unsolved
            runs count as later than all others; ``count`` of runs for which the measure is not 0.
            Of ``A less B`` as independent samples: ``means``, their difference with its interval
            and the p of Welch's t test; ``deviations``, the ratio of their standard deviations and
            the p of Brown and Forsythe's test.
        unit: ``%`` for shares of one.
        digits: after the point; by default one of percents, and three.
        split: with ``step``: what was logged of this split at that step, not at the end.
        step: of the row that was logged.
        published: by the key of a row, what others have printed, as they have it.
        target: with ``printed``: ``published`` has the rows of that target's table, whose numbers
            are shown.
        printed: the column of that table.
    """

    head: str
    measure: str = ""
    variants: Sequence[str] = ("{}",)
    experiment: str = ""
    show: Show = "mean"
    unit: Literal["", "%"] = ""
    digits: int | None = None
    split: str = ""
    step: int = 0
    published: Mapping[str, str] | None = None
    target: str = ""
    printed: str = ""

    def text(self, value: float) -> str:
        """A value of the measure, as the column prints it."""
        digits = self.digits if self.digits is not None else 1 if self.unit else 3
        return f"{value * (100 if self.unit else 1):,.{digits}f}"


@dataclass(frozen=True)
class Comparison:
    """A table of the variants of an experiment.

    Args:
        experiment: whose stored runs it shows.
        columns: what it shows of them.
        rows: by key (a label, or what columns put into ``variants``), the name that is shown; all
            variants if it is empty. ``EXPERIMENT/KEY`` is a row of another experiment.
        heading: of the names.
        source: of the published numbers.
    """

    experiment: str
    columns: tuple[Column, ...]
    rows: Mapping[str, str]
    heading: str = "variant"
    source: str = ""


class Cell(NamedTuple):
    """What stands in a cell, of how many seeds."""

    text: str
    seeds: int = 0
    diverged: int = 0


def _read() -> dict[str, Comparison]:
    found: dict[str, Comparison] = {}
    for path in sorted((Path(__file__).parent / "shown").glob("*.toml")):
        for name, entry in tomllib.loads(path.read_text(encoding="utf-8")).items():
            assert name not in found, f"{name} is in two files"
            columns = tuple(Column(**one) for one in entry.pop("columns"))
            found[name] = Comparison(columns=columns, **{"rows": {}, **entry})
    return found


COMPARISONS: dict[str, Comparison] = _read()
"""By the name of a generated part, what it shows."""


def compared(name: str) -> str:
    """A comparison as a table in Markdown, and a sentence that says on what it rests.

    Args:
        name: a key of ``COMPARISONS``.
    """
    one = COMPARISONS[name]
    rows = one.rows or {label: label for label in _variants(one.experiment)}
    cells = {key: [_cell(one, column, key) for column in one.columns] for key in rows}
    counts = Counter(cell.seeds for line in cells.values() for cell in line if cell.seeds)
    usual = counts.most_common(1)[0][0] if counts else 0
    right = [place for place, column in enumerate(one.columns, 1) if column.show != "seeds"]
    shown = markdown(
        (one.heading, *(column.head for column in one.columns)),
        ([rows[key], *(_marked(cell, usual) for cell in line)] for key, line in cells.items()),
        right=right,
    )
    return f"{shown}\n\n{_told(one, usual, len(counts) > 1)}"


def reads_curves(experiment: str) -> bool:
    """Whether a table shows what runs of an experiment logged on the way."""
    return any(
        column.split and _experiment(one, column, key) == experiment
        for one in COMPARISONS.values()
        for column in one.columns
        for key in one.rows or ("",)
    )


def _experiment(one: Comparison, column: Column, key: str) -> str:
    return column.experiment or key.rpartition("/")[0] or one.experiment


@cache
def _variants(experiment: str) -> tuple[str, ...]:
    return tuple(load(experiment)[1].variants())


def _cell(one: Comparison, column: Column, key: str) -> Cell:
    if column.published is not None:
        return Cell(_printed(column, column.published.get(key, "")))
    experiment = _experiment(one, column, key)
    labels = _labels(column, key, _variants(experiment))
    if not labels:
        return Cell("")
    found = stored(experiment)
    diverged = {seed for label in labels for seed in found.diverged(experiment, label)}
    first, *others = (_values(found, column, experiment, label) for label in labels)
    seeds = [seed for seed in first if all(seed in other for other in others)]
    if not seeds:
        return Cell("all diverged" if diverged else "not run", len(diverged))
    lost = len(diverged.difference(seeds))
    if column.show in BESIDE:
        return Cell(BESIDE[column.show](column, first, others[0]), len(seeds), lost)
    values = {seed: first[seed] - sum(other[seed] for other in others) for seed in seeds}
    return Cell(SHOWN[column.show](column, values), len(seeds), lost)


def _labels(column: Column, key: str, known: Sequence[str]) -> list[str]:
    """The variant of a cell, or the two that it compares; none where these are one."""
    row = key.rpartition("/")[2]
    for given in column.variants:
        labels = given.replace("{}", row).split(LESS)
        if {*labels} <= {*known} and len({*labels}) == len(labels):
            return labels
    return []


def _printed(column: Column, said: str) -> str:
    """What others have printed, or the number of a target that is named in its place."""
    if not (column.target and said):
        return said
    wanted = (said, column.printed)
    found = [one for one in of_target(column.target) if (one.row, one.column) == wanted]
    assert len(found) == 1, f"{column.target} has {len(found)} numbers of {wanted}"
    spread = "" if found[0].spread is None else f" ± {found[0].spread:g}"
    return f"{found[0].value:g}{spread}"


def _values(found: Outcomes, column: Column, experiment: str, label: str) -> dict[int, float]:
    if column.split:
        window = (column.split, column.step, column.step)
        return found.window(experiment, label, column.measure, *window)
    values = found.final(experiment, label, column.measure)
    if column.show == "median":
        solved = found.final(experiment, label, "solved")
        values |= {seed: math.inf for seed, value in solved.items() if not value}
    return values


def _mean(column: Column, values: Mapping[int, float]) -> str:
    found = estimate([*values.values()])
    half = "" if found.half_width is None else f" ± {column.text(found.half_width)}"
    return f"{column.text(found.mean)}{half}"


def _seeds(column: Column, values: Mapping[int, float]) -> str:
    return ", ".join(map(column.text, values.values()))


def _median(column: Column, values: Mapping[int, float]) -> str:
    reached = [value for value in values.values() if math.isfinite(value)]
    if not reached:
        return "-"
    middle = median(values.values())
    told = column.text(middle) if math.isfinite(middle) else "-"
    return f"{told} ({column.text(min(reached))} to {column.text(max(reached))})"


def _count(_: Column, values: Mapping[int, float]) -> str:
    return f"{sum(map(bool, values.values()))} of {len(values)}"


SHOWN: dict[Show, Callable[[Column, Mapping[int, float]], str]] = {
    "mean": _mean,
    "seeds": _seeds,
    "median": _median,
    "count": _count,
}
"""How a column shows the values of seeds."""


def _means(column: Column, first: Mapping[int, float], second: Mapping[int, float]) -> str:
    found = contrast([*first.values()], [*second.values()])
    low, high = column.text(found.low), column.text(found.high)
    return f"{column.text(found.difference)} ({low} to {high}), p {found.welch:.2g}"


def _deviations(_: Column, first: Mapping[int, float], second: Mapping[int, float]) -> str:
    found = contrast([*first.values()], [*second.values()])
    return f"{found.ratio:.2f}, p {found.brown_forsythe:.2g}"


BESIDE: dict[Show, Callable[[Column, Mapping[int, float], Mapping[int, float]], str]] = {
    "means": _means,
    "deviations": _deviations,
}
"""How a column shows the values of two variants as independent samples."""


def _paired(column: Column, key: str) -> bool:
    pairs = any(LESS in given.replace("{}", key) for given in column.variants)
    return pairs and bool(column.measure) and column.show in SHOWN


def _marked(cell: Cell, usual: int) -> str:
    lost = f"{cell.diverged} diverged" if cell.diverged else ""
    other = f"n = {cell.seeds}" if cell.seeds not in (0, usual) else ""
    marks = ", ".join(filter(None, (other, lost)))
    return f"{cell.text} ({marks})" if marks else cell.text


def _told(one: Comparison, usual: int, several: bool) -> str:
    given = (*(key.rpartition("/")[0] for key in one.rows), *(c.experiment for c in one.columns))
    names = dict.fromkeys(filter(None, (one.experiment, *given)))
    quick = any(stored(name).budget(name) == "quick" for name in names)
    told = [
        ", ".join(f"`attractor run {name}`" for name in names),
        "quick budget" * quick,
        f"{usual} seed{'s' * (usual != 1)}{' where no n is given' * several}",
        "± 95% of the mean" * any(c.measure and c.show == "mean" for c in one.columns),
        "differences seed by seed" * any(_paired(c, key) for c in one.columns for key in one.rows),
    ]
    source = f" Published: {one.source}." if one.source else ""
    return f"{', '.join(filter(None, told))}.{source}"
