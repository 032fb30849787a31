"""What a page shows of levels that grow harder: accuracy on present, earlier and later ones."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attractor.report.figures import Figure, plot_text, style
from attractor.results.measures import measure
from attractor.results.summary import summary
from attractor.results.variants import Group
from attractor.runs.read import Run

MOST = 4
"""Variants of which the three numbers are drawn in one figure, the best ones."""
TICKS = 20
"""Levels that are each named on an axis."""

Matrix = NDArray[np.float64]


def _previous(matrix: Matrix) -> list[float]:
    return [float(np.mean(row[:place])) if place else np.nan for place, row in enumerate(matrix)]


def _future(matrix: Matrix) -> list[float]:
    columns = matrix.shape[1]
    return [
        float(np.mean(row[place + 1 :])) if place + 1 < columns else np.nan
        for place, row in enumerate(matrix)
    ]


COURSES: dict[str, Callable[[Matrix], list[float]]] = {
    "Accuracy on the current level": lambda matrix: np.diagonal(matrix).tolist(),
    "Accuracy on previous levels": _previous,
    "Accuracy on future levels": _future,
}
"""By the heading of a figure, its number after each level: figures 5.2 to 5.4 of Chandar (2020)."""


def is_of_levels(run: Run) -> bool:
    """Whether a run went through levels, as a lifelong learner does, and tells of them."""
    grew = run.outcome.get("grew_at")
    if run.status != "done" or not isinstance(grew, list):
        return False
    try:
        matrix = np.array(run.outcome.get("matrix"), dtype=np.float64)
    except (TypeError, ValueError):
        return False
    known = all(isinstance(place, int) for place in grew)
    return known and matrix.ndim == 2 and matrix.size > 0 and bool(np.isfinite(matrix).all())


def ranked_by_levels(run: Run) -> Run:
    """A run, of which levels completed rank if it went through levels and says nothing else.

    Accuracies at different levels do not compare; runs of old releases leave it open.
    """
    known = is_of_levels(run) and measure("levels", [run]).goal == "max"
    if not known or "leading" in run.outcome:
        return run
    return replace(run, outcome={**run.outcome, "leading": "levels"})


def without_means(run: Run) -> Run:
    """A run without the row at its end, whose accuracies are means over levels.

    In a curve they would stand for the last level, which is harder than most.
    """
    return replace(run, rows=tuple(row for row in run.rows if "levels" not in row))


def level_curves(groups: Sequence[Group]) -> list[Figure]:
    """How accurate each variant is after each level, the mean over seeds that came so far."""
    found = [
        (index, group.label, [run for run in group.runs if is_of_levels(run)])
        for index, group in enumerate(groups)
    ]
    if not any(runs for _, _, runs in found):
        return []
    drawn = []
    for title, course in COURSES.items():
        traces = [_line(index, label, runs, course) for index, label, runs in found if runs]
        drawn.append(Figure(title, False, traces, _layout(traces)))
    through = {label for _, label, runs in found if runs}
    rows = summary([run for group in groups for run in group.runs])
    best = [row.label for row in rows if row.label in through][:MOST]
    return [*drawn, *(_of_one(*one) for one in found if one[1] in best)]


def _of_one(index: int, label: str, runs: Sequence[Run]) -> Figure:
    """All three numbers of a variant: figure 5.1, where it is the plain small LSTM."""
    traces = []
    for (title, course), dash in zip(COURSES.items(), ("solid", "dash", "dot"), strict=True):
        name = title.removeprefix("Accuracy on ")
        trace = _line(index, label, runs, course)
        trace |= {"name": name, "line": {**trace["line"], "dash": dash}}
        trace["hovertemplate"] = f"%{{y:.1%}}, %{{customdata}} seeds<extra>{name}</extra>"
        traces.append(trace)
    above = {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"}
    layout = _layout(traces) | {"showlegend": True, "legend": above}
    layout["margin"] = {**layout["margin"], "t": 36}
    return Figure(f"{label}: current, previous and future levels", False, traces, layout)


def _line(
    index: int, label: str, runs: Sequence[Run], course: Callable[[Matrix], list[float]]
) -> dict[str, Any]:
    each = [course(np.array(run.outcome["matrix"], dtype=np.float64)) for run in runs]
    longest = max(len(one) for one in each)
    padded = np.full((len(each), longest), np.nan)
    for row, values in zip(padded, each, strict=True):
        row[: len(values)] = values
    counts = np.isfinite(padded).sum(0)
    means = [
        round(float(np.nanmean(padded[:, place])), 4) if counts[place] else None
        for place in range(longest)
    ]
    colour, dash = style(index)
    grew = sorted({int(place) for run in runs for place in run.outcome["grew_at"]})
    sizes = [11 if place in grew else 5 for place in range(1, longest + 1)]
    symbols = ["diamond" if place in grew else "circle" for place in range(1, longest + 1)]
    return {
        "type": "scatter",
        "name": plot_text(label),
        "x": list(range(1, longest + 1)),
        "y": means,
        "customdata": counts.tolist(),
        "hovertemplate": f"%{{y:.1%}}, %{{customdata}} seeds<extra>{plot_text(label)}</extra>",
        "mode": "lines+markers",
        "line": {"color": colour, "dash": dash, "width": 2.25},
        "marker": {"color": colour, "size": sizes, "symbol": symbols},
        "meta": {"variant": index, "kind": "mean", "by": "level"},
    }


def _layout(traces: Sequence[dict[str, Any]]) -> dict[str, Any]:
    longest = max(len(trace["x"]) for trace in traces)
    ticks = {"dtick": 1} if longest <= TICKS else {"nticks": 10}
    axis = {"automargin": True, "zeroline": False, "showline": False, "ticks": ""}
    return {
        "xaxis": {**axis, "title": {"text": "level", "font": {"size": 13}}, **ticks},
        "yaxis": {
            **axis,
            "title": {"text": "accuracy", "font": {"size": 13}},
            "tickformat": ".0%",
            "type": "linear",
        },
        "hovermode": "x unified",
        "showlegend": False,
        "margin": {"l": 8, "r": 12, "t": 10, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
    }
