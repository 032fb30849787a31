"""Figures of stored trainings: losses by update, and what the runs were measured to be."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attractor.dynamics.plots import COLOURS, subplots
from attractor.estimates import estimate
from attractor.report.papers.kept import by_step, dash, draw_course, draw_legend
from attractor.reproduction.outcomes import Outcomes, stored

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Panels = Mapping[str, tuple[str, Mapping[str, str]]]
"""By title, an experiment and, by variant, the name that is shown."""

SPLITS = {"test": "test", "valid": "validation"}
ROOM = 3.0
"""Losses above this many times what variants start with leave the panel: they explode."""


def losses(panels: Panels) -> Figure:
    """Training losses by update: each seed, and their geometric mean."""
    figure, axes = subplots(1, len(panels), size=4)
    for ax, (title, (experiment, labels)) in zip(axes[0], panels.items(), strict=True):
        for place, (label, shown) in enumerate(labels.items()):
            steps, each = _logged(stored(experiment), experiment, label)
            name = f"{shown} ({len(each)} seeds)"
            (line,) = ax.plot(steps, _middle(each), dash(place), label=name)
            ax.plot(steps, each.T, color=line.get_color(), alpha=0.35, linewidth=0.6)
        ax.set(title=title, xlabel="update", ylabel="training loss", yscale="log")
    draw_legend(figure, axes[0, 0])
    return figure


def ended(panels: Panels, split: str) -> Figure:
    """A row for each panel: losses by update, and accuracies at the end, by variant.

    It is for runs that were evaluated once, at their end. Losses are shaded from the best seed to
    the worst; each seed's accuracy is a circle, and a bar their mean with its 95% interval.

    Args:
        panels: what they show.
        split: of the accuracies.
    """
    figure, axes = subplots(len(panels), 2, size=3.2)
    for (left, right), (title, (experiment, labels)) in zip(axes, panels.items(), strict=True):
        found = stored(experiment)
        _shaded(left, found, experiment, labels)
        left.set(title=title)
        names = []
        for place, (label, shown) in enumerate(labels.items()):
            ends = [
                100 * one[-1] for one in found.series(experiment, label, "accuracy", split).values()
            ]
            _marks(right, ends, place)
            names.append(f"{shown} ({len(ends)} seeds)")
        right.set_yticks(range(len(names)), names)
        right.invert_yaxis()
        right.set(xlabel=f"{SPLITS[split]} accuracy at the end, percent", xlim=(0, 100))
    return figure


def evaluated(experiment: str, labels: Mapping[str, str], measure: str, name: str) -> Figure:
    """Training losses by update, and a measure of validation data, shaded by a deviation.

    Args:
        experiment: whose stored runs it shows.
        labels: by variant, the name that is shown.
        measure: a share, shown in per cent.
        name: what its axis says.
    """
    found = stored(experiment)
    figure, axes = subplots(1, 2, size=3.6)
    left, right = axes[0]
    _shaded(left, found, experiment, labels)
    for place, (label, shown) in enumerate(labels.items()):
        draw_course(right, by_step(found, experiment, label, measure, "valid"), place, shown)
    right.set(xlabel="update", ylabel=f"{name}, percent")
    draw_legend(figure, right)
    return figure


def _logged(found: Outcomes, experiment: str, label: str) -> tuple[list[int], Tensor]:
    """The updates whose training loss all seeds have, and those losses ``(seeds, updates)``."""
    runs = by_step(found, experiment, label, "loss", "train")
    shared = sorted(set.intersection(*(set(run) for run in runs.values())))
    return shared, torch.tensor([[run[step] for step in shared] for run in runs.values()])


def _middle(each: Tensor) -> Tensor:
    return each.log().mean(0).exp()


def _shaded(ax: Axes, found: Outcomes, experiment: str, labels: Mapping[str, str]) -> None:
    """Geometric means, from the lowest seed to the highest; what explodes leaves at the top."""
    first, lowest = [], []
    for place, label in enumerate(labels):
        steps, each = _logged(found, experiment, label)
        (line,) = ax.plot(steps, _middle(each), dash(place))
        colour = line.get_color()
        ax.fill_between(steps, each.amin(0), each.amax(0), color=colour, alpha=0.15, linewidth=0)
        first.append(float(_middle(each)[0]))
        lowest.append(float(each.min()))
    ax.set(xlabel="update", ylabel="training loss", yscale="log")
    ax.set_ylim(min(lowest) / 1.1, min(ROOM * median(first), ax.get_ylim()[1]))


def _marks(ax: Axes, values: list[float], place: int) -> None:
    """A circle for each seed, hollow where its line is dashed, and the mean with its interval."""
    colour = COLOURS[place % len(COLOURS)]
    filled = colour if place < len(COLOURS) else "none"
    ax.plot(values, [place] * len(values), "o", color=colour, markerfacecolor=filled, markersize=4)
    found = estimate(values)
    ax.errorbar(found.mean, place, xerr=found.half_width, fmt="|", color=colour, linewidth=1)
