"""What a sweep over two settings came to: a map of the main measure."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from attractor.report.figures import Figure, plot_text
from attractor.report.rounding import plain
from attractor.report.tables import own_settings
from attractor.report.written import SCALE, written
from attractor.results.measures import main_metric, measure, words
from attractor.results.numbers import is_share
from attractor.results.variants import Group
from attractor.runs.read import Run

FULL = 0.75
"""The share of the places of a map that are known, from which on it is one of a sweep."""
WRITTEN = 12
"""Columns up to which the numbers are written into a map."""


def grid(runs: Sequence[Run], groups: Sequence[Group]) -> Figure | None:
    """The mean of the main measure by both settings; ``None`` if variants are no such grid.

    Args:
        runs: of one experiment and budget.
        groups: their variants.
    """
    keys, own = own_settings(groups)
    if len(keys) != 2:
        return None
    main = main_metric(runs)
    means: dict[tuple[str, str], float] = {}
    for group, (_, (row, column)) in zip(groups, own, strict=True):
        if (row, column) in means:
            return None
        if values := [run.test[main] for run in group.runs if main in run.test]:
            means[row, column] = fmean(values)
    rows, columns = (_ordered([values[place] for _, values in own]) for place in (0, 1))
    if min(len(rows), len(columns)) < 2 or len(means) < FULL * len(rows) * len(columns):
        return None
    what = measure(main, runs)
    share = is_share(what, [*means.values()])
    z = [[means.get((row, column)) for column in columns] for row in rows]
    digits = ".1%" if share else ".4~g"
    map_: dict[str, Any] = {
        "type": "heatmap",
        "z": [[None if v is None else float(f"{v:.6g}") for v in line] for line in z],
        "x": [plot_text(one) for one in columns],
        "y": [plot_text(one) for one in rows],
        "colorscale": SCALE,
        "hoverongaps": False,
        "hovertemplate": f"%{{y}}, %{{x}}: %{{z:{digits}}}<extra></extra>",
        "colorbar": {"tickformat": ".0%" if share else "~g", "thickness": 10, "outlinewidth": 0},
    }
    traces = [map_]
    if len(columns) <= WRITTEN:
        texts = [["" if v is None else _brief(v, share) for v in line] for line in z]
        traces.append(written(map_, texts, min(means.values()), max(means.values())))
    axis = {"type": "category", "automargin": True, "showgrid": False, "zeroline": False}
    titles = [{"text": plot_text(key), "font": {"size": 13}} for key in keys]
    layout = {
        "xaxis": {**axis, "title": titles[1]},
        "yaxis": {**axis, "title": titles[0], "autorange": "reversed"},
        "margin": {"l": 8, "r": 8, "t": 10, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
    }
    word, choose = ("lowest", min) if what.goal == "min" else ("highest", max)
    row, column = choose(means, key=lambda place: means[place])
    best = f"{plain(means[row, column], share)}{'%' if share else ''}"
    said = f"the {word} mean, {best}, is at {keys[0]} {row} and {keys[1]} {column}"
    name = words(main)
    return Figure(f"{name[0].upper()}{name[1:]} by setting", True, traces, layout, said)


def _ordered(values: Sequence[str]) -> list[str]:
    """Each value once, numbers by size; else in the order of the variants."""
    each = [*dict.fromkeys(values)]
    try:
        return sorted(each, key=float)
    except ValueError:
        return each


def _brief(value: float, share: bool) -> str:
    return f"{value:.1%}" if share else f"{value:.3g}"
