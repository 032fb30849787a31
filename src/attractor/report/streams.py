"""What a page shows of tasks in turn: where each ends, and who still knows what."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attractor.report.figures import Figure
from attractor.report.levels import is_of_levels
from attractor.report.written import SCALE, written
from attractor.results.measures import TASK
from attractor.results.variants import Group
from attractor.runs.read import Run

MOST = 12
"""Variants whose matrices are drawn."""
WRITTEN = 10
"""Tasks up to which the numbers are written into a matrix."""


def boundaries(runs: Sequence[Run]) -> list[int]:
    """The steps at which tasks end, where all runs have the same; none for other kinds of runs."""
    each = {
        tuple(row["step"] for row in run.rows if any(TASK.fullmatch(name) for name in row))
        for run in runs
        if run.status == "done"
    }
    return list(each.pop()) if len(each) == 1 else []


def marked(figure: Figure, ends: Sequence[int]) -> Figure:
    """A figure with a line where each task but the last ends, and the tasks named above."""
    if len(ends) < 2:
        return figure
    line = {"color": "#8A8A8A", "width": 1, "dash": "dot"}
    figure.layout["shapes"] = [
        {"type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1, "line": line}
        for x in ends[:-1]
    ]
    every = -(-len(ends) // 10)  # at most ten names beside each other
    figure.layout["annotations"] = [
        {
            "x": (before + end) / 2,
            "yref": "paper",
            "y": 1,
            "yanchor": "bottom",
            "text": f"task {number}" if number == 1 else str(number),
            "showarrow": False,
            "font": {"size": 11},
        }
        for number, (before, end) in enumerate(zip([0, *ends], ends, strict=False), start=1)
        if (number - 1) % every == 0
    ]
    figure.layout["margin"] = {**figure.layout["margin"], "t": 24}
    return figure


def matrices(groups: Sequence[Group]) -> list[Figure]:
    """The accuracy on each task after each task, the mean over seeds: a map for each variant."""
    drawn = []
    for group in groups[:MOST]:
        found = [one for run in group.runs if (one := _matrix(run)) is not None]
        if not found or len({one.shape[1] for one in found}) > 1:
            continue
        levels = any(is_of_levels(run) for run in group.runs)
        if not levels and len({one.shape for one in found}) > 1:
            continue
        mean = _mean(found)
        columns = mean.shape[1]
        first = int(levels or len(mean) == columns)  # else row 0 is before any training
        what = "level" if levels else "task"
        trace: dict[str, Any] = {
            "type": "heatmap",
            "z": [
                [None if np.isnan(value) else round(float(value), 4) for value in row]
                for row in mean
            ],
            "x": [str(number) for number in range(1, columns + 1)],
            "y": [str(number) for number in range(first, first + len(mean))],
            "zmin": 0,
            "zmax": 1,
            "colorscale": SCALE,
            "hovertemplate": f"{what} %{{x}} after {what} %{{y}}: %{{z:.1%}}<extra></extra>",
            "colorbar": {"tickformat": ".0%", "thickness": 10, "outlinewidth": 0},
        }
        traces: list[dict[str, Any]] = [trace]
        if columns <= WRITTEN:
            texts = [["" if np.isnan(one) else f"{one:.0%}" for one in row] for row in mean]
            traces.append(written(trace, texts, 0.0, 1.0))
        axis = {"type": "category", "automargin": True, "showgrid": False, "zeroline": False}
        layout = {
            "xaxis": {**axis, "title": {"text": f"accuracy on {what}", "font": {"size": 13}}},
            "yaxis": {
                **axis,
                "title": {"text": f"after {what}", "font": {"size": 13}},
                "autorange": "reversed",
            },
            "margin": {"l": 8, "r": 8, "t": 10, "b": 8},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
        }
        drawn.append(Figure(group.label, False, traces, layout, _said(mean, what, first)))
    return drawn


def _said(mean: Any, what: str, first: int) -> str:
    """The last row, for those who do not see the map."""
    numbers = ", ".join("–" if np.isnan(value) else f"{value:.0%}" for value in mean[-1])
    return f"after {what} {first + len(mean) - 1}: {numbers}"


def _mean(found: "Sequence[np.ndarray[tuple[int, int], np.dtype[np.float64]]]") -> Any:
    """Over seeds; where some did not come so far, over those that did."""
    rows = max(len(one) for one in found)
    padded = [np.pad(one, ((0, rows - len(one)), (0, 0)), constant_values=np.nan) for one in found]
    return np.nanmean(padded, axis=0)


def _matrix(run: Run) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]] | None":
    """Of a finished run; ``None`` if it has none, or one that is not of numbers."""
    found = run.outcome.get("matrix") if run.status == "done" else None
    try:
        matrix = np.array(found, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return matrix if matrix.ndim == 2 and np.isfinite(matrix).all() else None
