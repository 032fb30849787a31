"""The tables of a page: results, settings, environment and the runs that went wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attractor.estimates import Estimate
from attractor.report.claims import Told
from attractor.report.comparing import behind, compared, on_paper, standing
from attractor.report.figures import SPLITS, style, symbol
from attractor.report.rounding import alike, with_intervals
from attractor.reproduction.published import Published
from attractor.results import numbers
from attractor.results.measures import measure, words
from attractor.results.numbers import MISSING, count, duration, is_share
from attractor.results.summary import SummaryRow, summary
from attractor.results.variants import Group, differing, settings, variants
from attractor.runs.environment import segments
from attractor.runs.read import Run

# The strip that shows an interval, in the units of its drawing.
STRIP_WIDTH = 120
_STRIP_EDGE = 5
MARKS = {
    "circle": "",
    "square": "M8 1h6v6h-6z",
    "diamond": "M11 0l4 4-4 4-4-4z",
    "triangle-up": "M11 0l4 8h-8z",
    "x": "M8 1l6 6M14 1l-6 6",
}
"""The markers of many variants, as they are drawn in the key; the first ones need none."""
MOST_VALUES = 4
"""Values of a key of the environment that are told one by one."""


@dataclass(frozen=True)
class Cell:
    """One cell: its text, the number it sorts by (``None`` for the text), whether it is best.

    Best is what paired tests show to be ahead of all others.
    """

    text: str
    value: float | None = None
    best: bool = False


@dataclass(frozen=True)
class Strip:
    """An interval drawn to the scale of its column: positions from 0 to ``STRIP_WIDTH``."""

    low: float | None
    high: float | None
    mean: float
    seeds: tuple[float, ...]


@dataclass(frozen=True)
class ResultRow:
    """A variant's row: its colour, its cells in the order of the headings, its strip."""

    label: str
    index: int
    cells: tuple[Cell, ...]
    strip: Strip | None


@dataclass(frozen=True)
class ResultTable:
    """The table of results.

    ``scale`` is what the two ends of the strips stand for, ``compared`` how tests were made.
    """

    headings: tuple[str, ...]
    rows: tuple[ResultRow, ...]
    scale: tuple[str, str] | None
    note: str
    compared: str


def result_table(runs: Sequence[Run], claims: Sequence[Told] = ()) -> ResultTable:
    """One row per variant of one experiment and budget, the best first."""
    rows = summary(runs)
    indices = {variant.label: index for index, variant in enumerate(variants(runs))}
    main = rows[0].metric
    metrics = dict.fromkeys([main, *(name for row in rows for name in row.estimates)])
    what = {name: measure(name, runs) for name in metrics}
    shares = {name: is_share(what[name], _values(rows, name)) for name in metrics}
    estimates = [row.estimate for row in rows if row.estimate is not None]
    ends = _ends(estimates, shares[main])
    split = _split(runs)
    measures = [_heading(split, name, shares[name]) for name in metrics]
    stand = standing(runs, claims)
    paper = on_paper(runs, main)
    beside = ["Behind the best"] if len(rows) > 1 and stand.best is not None else []
    printed = ["Published"] if any(row.label in paper for row in rows) else []
    headings = ["Rank", measures[0], *printed, *beside, "Median", *measures[1:]]
    ended = all(row.status == "done" for row in rows)
    headings += ["Seeds", "Parameters", "Time", *(() if ended else ("Status",))]
    columns = {
        name: with_intervals([row.estimates.get(name) for row in rows], share)
        for name, share in shares.items()
    }
    middles = [None if row.estimate is None else row.estimate.median for row in rows]
    medians = alike(middles, shares[main])
    found = []
    for place, (row, middle) in enumerate(zip(rows, middles, strict=True)):
        measured = []
        for name, texts in columns.items():
            one = row.estimates.get(name)
            mean = None if one is None else one.mean
            ahead = name == main and row.label == stand.best and stand.proven
            measured.append(Cell(texts[place], mean, ahead))
        total = row.n + row.failed + row.unfinished
        cells = [
            Cell(MISSING if row.rank is None else str(row.rank), row.rank),
            measured[0],
            *([_on_paper(paper.get(row.label))] if printed else []),
            *([Cell(*behind(stand, row.label))] if beside else []),
            Cell(medians[place], middle),
            *measured[1:],
            Cell(str(row.n) if row.n == total else f"{row.n} of {total}", row.n),
            Cell(count(row.parameters), row.parameters),
            Cell(duration(row.seconds), row.seconds),
            # The seeds say how many are done.
            *(() if ended else (Cell(row.status.removeprefix(f"{row.n} done, ")),)),
        ]
        strip = None if row.estimate is None or ends is None else _strip(row.estimate, ends)
        found.append(ResultRow(row.label, indices[row.label], tuple(cells), strip))
    share = shares[main]
    scale = None if ends is None else (numbers.plain(ends[0], share), numbers.plain(ends[1], share))
    direction = "higher" if what[main].goal == "max" else "lower"
    return ResultTable(
        tuple(headings),
        tuple(found),
        scale,
        f"Ranked by {split.lower()} {words(main)}: {direction} is better.",
        compared(stand),
    )


def swatches(groups: Sequence[Group]) -> list[dict[str, str]]:
    """The key to the curves: label, colour, dash pattern and, of many, the marker."""
    patterns = {"solid": "none", "dash": "6 3", "dot": "2 3", "dashdot": "6 3 2 3"}
    styles = [style(index) for index in range(len(groups))]
    marks = [symbol(index) for index in range(len(groups))]
    return [
        {"label": variant.label, "colour": colour, "dash": patterns[dash], "mark": MARKS[mark]}
        for variant, (colour, dash), mark in zip(groups, styles, marks, strict=True)
    ]


def common_settings(runs: Sequence[Run]) -> dict[str, dict[str, str]]:
    """The settings that all runs share, by their table in the configuration."""
    tables = [settings(run) for run in runs]
    apart = set(differing(tables))
    result: dict[str, dict[str, str]] = {}
    for key, value in tables[0].items():
        if key not in apart:
            table, _, name = key.rpartition(".")
            result.setdefault(table, {})[name] = shown(value)
    return result


def own_settings(groups: Sequence[Group]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """The settings in which variants differ: the keys, then each variant's values."""
    tables = [settings(variant.runs[0]) for variant in groups]
    keys = differing(tables)
    return keys, [
        (variant.label, [shown(table.get(key)) for key in keys])
        for variant, table in zip(groups, tables, strict=True)
    ]


def environment(runs: Sequence[Run]) -> list[tuple[str, list[tuple[str, int]]]]:
    """What the runs ran on: for each key its values, with the number of runs that had each."""
    found: dict[str, dict[str, int]] = {}
    for run in runs:
        each = [
            (key, shown(value))
            for segment in segments(run.environment)
            for key, value in segment.items()
            if key not in ("command", "step")  # the command has a section of its own
        ]
        for key, value in dict.fromkeys(each):
            counts = found.setdefault(key, {})
            counts[value] = counts.get(value, 0) + 1
    return [(key, _few(counts)) for key, counts in sorted(found.items())]


def _few(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """All values, or where each run has its own, such as when it started, the first and last."""
    if len(counts) <= MOST_VALUES:
        return list(counts.items())
    return [(f"{min(counts)} to {max(counts)}, {len(counts)} values", sum(counts.values()))]


def shown(value: Any) -> str:
    """A setting as TOML would write it, without the quotes around text."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {shown(one)}" for key, one in value.items())
    if isinstance(value, list):
        return "[" + ", ".join(shown(one) for one in value) + "]"
    return str(value)


def _split(runs: Sequence[Run]) -> str:
    """Whose data the final measures of the runs are of."""
    splits = {SPLITS[run.split] for run in runs}
    return splits.pop() if len(splits) == 1 else "Held-out"


def _heading(split: str, metric: str, share: bool) -> str:
    return f"{split} {words(metric)}, %" if share else f"{split} {words(metric)}"


def _values(rows: Sequence[SummaryRow], metric: str) -> list[float]:
    return [v for row in rows if (one := row.estimates.get(metric)) for v in one.values]


def _on_paper(one: Published | None) -> Cell:
    """What a document prints, in the unit of the column."""
    if one is None:
        return Cell(MISSING)
    spread = "" if one.number.spread is None else f" ± {one.number.spread:g}"
    return Cell(f"{one.number.value:g}{spread}", one.number.value)


def _ends(found: Sequence[Estimate], share: bool) -> tuple[float, float] | None:
    values = [value for one in found for value in one.values]
    if not values:
        return None
    # Two seeds can give an interval many times wider than all the rest: let it run off the strip.
    room = max(values) - min(values) or abs(max(values)) or 1.0
    low = min(one.mean - (one.half_width or 0) for one in found)
    high = max(one.mean + (one.half_width or 0) for one in found)
    low = max(min(low, *values), min(values) - room / 2)
    high = min(max(high, *values), max(values) + room / 2)
    if high <= low:
        low, high = low - room / 2, high + room / 2
    if share:
        low, high = max(low, 0.0 if min(values) >= 0 else -1.0), min(high, 1.0)
    return low, high


def _strip(one: Estimate, ends: tuple[float, float]) -> Strip:
    low, high = ends

    def place(value: float) -> float:
        part = min(max((value - low) / (high - low), 0.0), 1.0)
        return round(_STRIP_EDGE + part * (STRIP_WIDTH - 2 * _STRIP_EDGE), 2)

    half = one.half_width
    return Strip(
        low=None if half is None else place(one.mean - half),
        high=None if half is None else place(one.mean + half),
        mean=place(one.mean),
        seeds=tuple(place(value) for value in one.values),
    )
