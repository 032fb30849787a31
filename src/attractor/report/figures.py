"""Curves of runs as plotly figures: plain dictionaries of traces and layout."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attractor.measures import Measure
from attractor.report.rounding import plain
from attractor.results.curves import Floats, Line, curve
from attractor.results.measures import TASK, main_metric, measure, words
from attractor.results.numbers import is_share
from attractor.results.variants import variants
from attractor.runs.read import Run

Trace = dict[str, Any]

# Okabe and Ito's colours, which the colour-blind can tell apart: without yellow, too faint on
# white, and with grey for black, which a dark page would swallow.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A8A8A")
DASHES = ("solid", "dash", "dot", "dashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x")
MOST_POINTS = 2000
"""Points of a curve, if a page has room for them."""
FEWEST_POINTS = 50
ROOM = 3_000_000
"""Bytes for the curves of a page, which weighs as much again without them."""
SEED_BYTES, MEAN_BYTES = 16, 70
"""What a point takes in the curve of a seed, and in that of a mean with its band."""
SPLITS = {"valid": "Validation", "test": "Test", "train": "Training"}
META = "meta"
"""The split of what is logged while an optimiser is trained, at steps below zero."""


@dataclass(frozen=True)
class Figure:
    """A plotly figure with the heading it has on the page; a wide one takes both columns.

    ``said`` tells those who do not see it what is seen.
    """

    title: str
    wide: bool
    traces: list[Trace]
    layout: dict[str, Any]
    said: str = ""


def style(index: int) -> tuple[str, str]:
    """The colour and the dash of a variant: when the colours run out, the dash changes."""
    return COLOURS[index % len(COLOURS)], DASHES[index // len(COLOURS) % len(DASHES)]


def symbol(index: int) -> str:
    """The marker of a variant, which changes when colours and dashes have run out."""
    return SYMBOLS[index // (len(COLOURS) * len(DASHES)) % len(SYMBOLS)]


def learning_curves(
    runs: Sequence[Run], counts: Collection[str] = (), room: float = ROOM
) -> list[Figure]:
    """A figure for each measure of each split, the main one first; none for a single test.

    Args:
        runs: of one experiment and budget.
        counts: what is logged and not drawn.
        room: the bytes that all their curves may take, about.
    """
    main = main_metric(runs)
    alive = [run for run in runs if run.status != "failed"]
    measures = []
    for split in SPLITS:
        names = {name for run in alive for row in run.rows if row["split"] == split for name in row}
        if split == "test":  # most runs have one at their end, which the table tells
            names = {n for n in names if any(len(run.series(split, n)) > 1 for run in alive)}
        if any("matrix" in run.outcome for run in alive):  # which shows the other tasks
            names = {n for n in names if n == "task_1" or not TASK.fullmatch(n)}
        names -= {"step", "split", *counts}
        ordered = sorted(names, key=lambda m: (m != main, m != "loss", m))
        measures += [(split, name) for name in ordered]
    most = _most_points(runs, [*measures, (META, "loss"), (META, "last")], room)
    drawn = [made for split, name in measures if (made := figure(runs, split, name, most))]
    drawn += [made for name in ("loss", "last") if (made := meta_curve(runs, name, most))]
    if len(drawn) % 2:
        drawn[0] = replace(drawn[0], wide=True)
    return drawn


def _most_points(runs: Sequence[Run], measures: Sequence[tuple[str, str]], room: float) -> int:
    """To how many points all curves are thinned, so that they have room."""
    sizes, means = [], []
    for group in variants(runs):
        each = [[len(run.series(*measure)) for run in group.runs] for measure in measures]
        sizes += [size for found in each for size in found]
        means += [max(found) for found in each]

    def bytes_of(most: int) -> int:
        seeds = sum(min(size, most) for size in sizes)
        return SEED_BYTES * seeds + MEAN_BYTES * sum(min(size, most) for size in means)

    most = MOST_POINTS
    while bytes_of(most) > room and most > FEWEST_POINTS:
        most = max(most * 3 // 4, FEWEST_POINTS)
    return most


def meta_curve(runs: Sequence[Run], metric: str, most: int = MOST_POINTS) -> Figure | None:
    """Draw what the training of an optimiser logged, by its own steps, from one on."""
    made = figure([_from_one(run) for run in runs], META, metric, most)
    if made is None:
        return None
    title = {"loss": "Meta-training: loss of an unroll", "last": "Meta-training: last loss"}
    made.layout["xaxis"]["title"] = _title("meta-training step", 8)
    return replace(made, title=title[metric])


def _from_one(run: Run) -> Run:
    rows = [row for row in run.rows if row["split"] == META]
    first = min((row["step"] for row in rows), default=0)
    return replace(run, rows=tuple({**row, "step": row["step"] - first + 1} for row in rows))


def figure(runs: Sequence[Run], split: str, metric: str, most: int = MOST_POINTS) -> Figure | None:
    """Draw a measure: bands at the back, single seeds (hidden at first), means in front.

    Curves have at most so many points. ``None`` if no run has it but failed ones.
    """
    groups = variants(runs)
    seeds = [
        (index, run, run.series(split, metric))
        for index, variant in enumerate(groups)
        for run in variant.runs
    ]
    alive = [value for _, run, s in seeds if run.status != "failed" for value in s.values()]
    if not alive:
        return None
    what = measure(metric, runs)
    share = is_share(what, alive)
    log = what.log and min(alive) > 0 and max(alive) > 8 * min(alive)
    lines = curve(runs, split, metric, log=log).lines
    indices = {variant.label: index for index, variant in enumerate(groups)}
    means = {indices[line.label] for line in lines}
    traces = [_band(line, indices[line.label], most) for line in lines if np.any(line.n > 1)]
    traces += [
        _seed(values, index, run, most, hidden=index in means)
        for index, run, values in seeds
        if values
    ]
    traces += [_mean(line, indices[line.label], most, share) for line in lines]
    name = words(metric)
    last = max(int(line.steps[-1]) for line in lines)
    return Figure(
        title=f"{SPLITS.get(split, split)} {name}",
        wide=False,
        traces=traces,
        layout=_layout(name, last, _scales(alive, share), "log" if log else "linear"),
        said=_said({line.label: float(line.mean[-1]) for line in lines}, name, what, share),
    )


def _said(ends: dict[str, float], name: str, what: Measure, share: bool) -> str:
    """How the means of variants end."""
    unit = "%" if share else ""
    if what.goal == "none":
        low, high = (plain(one(ends.values()), share) for one in (min, max))
        return f"the means end between {low}{unit} and {high}{unit}"
    choose, word = (max, "highest") if what.goal == "max" else (min, "lowest")
    best = choose(ends, key=lambda label: ends[label])
    alone = f"the {word} mean {name}," if len(ends) > 1 else f"a mean {name} of"
    return f"{best} ends with {alone} {plain(ends[best], share)}{unit}"


def thin(values: Floats, most: int = MOST_POINTS) -> NDArray[np.intp]:
    """Indices of at most ``most`` points: the first, the last, and the extremes in between."""
    size = len(values)
    if size <= most:
        return np.arange(size)
    edges = np.linspace(0, size, (most - 2) // 2 + 1).astype(int)
    keep = {0, size - 1}
    for start, stop in pairwise(edges):
        part = values[start:stop]
        keep |= {start + int(part.argmin()), start + int(part.argmax())}
    return np.array(sorted(keep))


def plot_text(text: str) -> str:
    """Text that plotly shows as it is: it would read tags, and ``%{...}`` in hover boxes."""
    for old, new in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("%{", "%\u200b{")):
        text = text.replace(old, new)
    return text


def _scales(values: Sequence[float], share: bool) -> dict[str, dict[str, Any]]:
    """The axis of values by its type; none that is logarithmic where some are not above zero."""
    types = ("linear", "log") if min(values) > 0 else ("linear",)
    return {one: _y_axis(values, share, one == "log") for one in types}


def _y_axis(values: Sequence[float], share: bool, log: bool) -> dict[str, Any]:
    # The range is that of the runs, not of the bands: with two seeds those are very wide.
    low, high = min(values), max(values)
    if log:
        low, high = math.log10(low), math.log10(high)
    pad = 0.05 * (high - low) or 0.05 * abs(high) or 0.05
    low, high = low - pad, high + pad
    if share and log:
        high = min(high, math.log10(1.02))
    elif share:
        low, high = max(low, -0.02 if min(values) >= 0 else -1.02), min(high, 1.02)
    axis: dict[str, Any] = {
        "range": [_short(low), _short(high)],
        "type": "log" if log else "linear",
    }
    if log:
        # Or plotly would crowd the axis, and write 0.2 and 0.5 as small 2 and 5. With these
        # numbers it marks 1, 2 and 5 on a short axis and powers of ten on a long one.
        ticks = (high - low) * (2 if high - low < 2.5 else 1)
        axis |= {"tickformat": ".3~%" if share else "~g", "nticks": max(round(ticks), 2)}
    elif share:
        axis["tickformat"] = ".0%" if high - low > 0.05 else ".1%"
    return axis


def _layout(
    name: str, last_step: int, scales: dict[str, dict[str, Any]], drawn: str
) -> dict[str, Any]:
    title = f"{name} (log scale)" if drawn == "log" else name
    axis = {"automargin": True, "zeroline": False, "showline": False, "ticks": ""}
    x_axis = {
        "title": _title("training step", 8),
        "range": [0, _short(1.01 * max(last_step, 1))],
        "separatethousands": True,
        "nticks": 8,
        "unifiedhovertitle": {"text": "step %{x:,}"},
    }
    return {
        "xaxis": axis | x_axis,
        "yaxis": axis | scales[drawn] | {"title": _title(title, 10)},
        "meta": {"drawn": drawn, "scales": scales, "name": plot_text(name)},
        "hovermode": "x unified",
        "showlegend": False,
        "margin": {"l": 8, "r": 12, "t": 10, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
    }


def _title(text: str, distance: int) -> dict[str, Any]:
    return {"text": plot_text(text), "standoff": distance, "font": {"size": 13}}


def _mean(line: Line, index: int, most: int, share: bool) -> Trace:
    colour, dash = style(index)
    keep = thin(line.mean, most)
    digits = ".2%" if share else ".4~g"
    band = f" ({{low:{digits}}} to {{high:{digits}}})"
    band = band.replace("{low", "%{customdata[1]").replace("{high", "%{customdata[2]")
    extra = f"<extra>{plot_text(line.label)}</extra>"
    alone = f"%{{y:{digits}}}, %{{customdata[0]}} seed{extra}"
    several = f"%{{y:{digits}}}{band}, %{{customdata[0]}} seeds{extra}"
    templates = [alone if n == 1 else several for n in line.n[keep]]
    few = len(keep) <= 16
    marker: dict[str, Any] = {"color": colour, "size": 5}
    if (mark := symbol(index)) != SYMBOLS[0]:
        marker |= {"symbol": mark, "size": 8, "maxdisplayed": 12}
    return {
        "type": "scatter",
        "name": plot_text(line.label),
        "x": line.steps[keep].tolist(),
        "y": _shorts(line.mean[keep]),
        "customdata": [
            [int(n)] if n == 1 else [int(n), _short(low), _short(high)]
            for n, low, high in zip(line.n[keep], line.low[keep], line.high[keep], strict=True)
        ],
        "hovertemplate": templates[0] if len(set(templates)) == 1 else templates,
        "mode": "lines+markers" if few or "symbol" in marker else "lines",
        "line": {"color": colour, "dash": dash, "width": 2.25},
        "marker": marker,
        "meta": {"variant": index, "kind": "mean"},
    }


def _band(line: Line, index: int, most: int) -> Trace:
    colour, _ = style(index)
    keep = thin(line.mean, most)
    n, steps, low, high = line.n[keep], line.steps[keep], line.low[keep], line.high[keep]
    x: list[int | None] = []
    y: list[float | None] = []
    # One closed outline for each stretch with more than one seed, with a gap between outlines.
    cuts = np.flatnonzero(np.diff(n > 1)) + 1
    for part in np.split(np.arange(len(keep)), cuts):
        if n[part[0]] > 1:
            gap = [None] * bool(x)
            x += [*gap, *steps[part].tolist(), *steps[part][::-1].tolist()]
            y += [*gap, *_shorts(high[part]), *_shorts(low[part][::-1])]
    return {
        "type": "scatter",
        "name": plot_text(line.label),
        "x": x,
        "y": y,
        "mode": "lines",
        "line": {"width": 0, "color": colour},
        "fill": "toself",
        "fillcolor": _faint(colour),
        "hoverinfo": "skip",
        "meta": {"variant": index, "kind": "band"},
    }


def _seed(values: dict[int, float], index: int, run: Run, most: int, hidden: bool) -> Trace:
    colour, dash = style(index)
    y = np.array(list(values.values()))
    keep = thin(y, most)
    trace: Trace = {
        "type": "scatter",
        "name": plot_text(f"{run.label}, seed {run.seed}"),
        **_steps(np.array(list(values))[keep]),
        "y": _shorts(y[keep]),
        "mode": "lines",
        "line": {"color": colour, "dash": dash, "width": 1},
        "opacity": 0.55,
        "visible": not hidden,
        "meta": {"variant": index, "kind": "seed" if hidden else "mean", "seed": run.seed},
    }
    if run.status == "failed":
        sizes = [0] * (len(keep) - 1) + [9]  # a cross where it stopped
        trace |= {"mode": "lines+markers", "line": {"color": colour, "dash": "dot", "width": 1.5}}
        trace |= {"marker": {"symbol": "x", "size": sizes, "color": colour}, "opacity": 0.9}
        trace["name"] = plot_text(f"{run.label}, seed {run.seed} (failed)")
    return trace


def _steps(steps: NDArray[np.int64]) -> dict[str, Any]:
    """Steps of one seed: a start and a distance where all are as far apart, for half the bytes."""
    apart = np.unique(np.diff(steps))
    if len(apart) == 1:
        return {"x0": int(steps[0]), "dx": int(apart[0])}
    return {"x": steps.tolist()}


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.13)"


def _shorts(values: Floats) -> list[float]:
    return [_short(value) for value in values.tolist()]


def _short(value: float) -> float:
    # Six digits draw the same picture in half the bytes.
    return float(f"{value:.6g}")
