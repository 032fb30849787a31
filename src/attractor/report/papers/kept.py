"""Figures of stored runs: means over seeds along tasks or levels, and spreads over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING

import torch

from attractor.dynamics.plots import draw_violins, subplots
from attractor.reproduction.outcomes import Outcomes, stored
from attractor.reproduction.races import Race, budgets, curves, named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DASHES = ("-", "--", "-.", ":")
SHORT = {"accuracy": "ACC", "first_task_accuracy": "FA1"}
"""What the thesis calls a measure."""


def along(
    experiment: str, labels: Mapping[str, str], measures: Mapping[str, str], *, step: str
) -> Figure:
    """A panel for each measure: means over seeds after each task or level, shaded by a deviation.

    Args:
        experiment: whose stored runs it shows.
        labels: by variant, the name that is shown.
        measures: by measure, what its axis says, in per cent.
        step: what is counted along the other axis.
    """
    found = stored(experiment)
    figure, axes = subplots(1, len(measures), size=4)
    for ax, (measure, name) in zip(axes[0], measures.items(), strict=True):
        for place, (label, shown) in enumerate(labels.items()):
            _course(ax, found.series(experiment, label, measure, "test"), place, shown)
        ax.set(xlabel=step, ylabel=f"{name}, percent")
        ax.xaxis.get_major_locator().set_params(integer=True)
    _, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(*axes[0, 0].get_legend_handles_labels(), **_below(len(names)))
    return figure


def _course(ax: Axes, runs: Mapping[int, list[float]], place: int, name: str) -> None:
    """The mean of those runs that came so far, from the second on with a deviation to each side."""
    steps = [
        100 * torch.tensor([value for value in column if value is not None])
        for column in zip_longest(*runs.values())
    ]
    at = range(1, len(steps) + 1)
    mean = torch.stack([one.mean() for one in steps])
    deviation = torch.stack([one.std() if len(one) > 1 else one[0] * 0 for one in steps])
    label = f"{name} ({len(runs)} seeds)"
    (line,) = ax.plot(at, mean, DASHES[place // 8 % len(DASHES)], label=label)
    ax.fill_between(at, mean - deviation, mean + deviation, color=line.get_color(), alpha=0.15)


def spreads(panels: Mapping[str, tuple[str, Mapping[str, str]]], measures: Iterable[str]) -> Figure:
    """How runs ended, a row of panels for each measure: violins over seeds.

    Args:
        panels: by title, an experiment and, by variant, the name that is shown.
        measures: what runs ended with.
    """
    measures = list(measures)
    figure, axes = subplots(len(measures), len(panels), size=3)
    for row, measure in zip(axes, measures, strict=True):
        for ax, (title, (experiment, labels)) in zip(row, panels.items(), strict=True):
            groups = _ends(stored(experiment), experiment, labels, measure)
            draw_violins(groups, ax, y=f"{SHORT[measure]}, percent")
            ax.set(title=title)
    return figure


def _ends(
    found: Outcomes, experiment: str, labels: Mapping[str, str], measure: str
) -> dict[str, torch.Tensor]:
    ends = {shown: found.final(experiment, one, measure) for one, shown in labels.items()}
    return {
        f"{shown}\n{len(values)} seeds": 100 * torch.tensor([*values.values()])
        for shown, values in ends.items()
    }


def race_of(race: Race) -> Figure:
    """The share of runs that have not yet solved their task, by updates."""
    figure, axes = subplots(1, 1, size=4)
    last, each = budgets(race.experiment), curves(race)
    for place, (label, one) in enumerate(each.items()):
        steps, share = [*one.steps, last[label]], [*one.share, one.share[-1]]
        shown = f"{named(race, label)}: {len(one.at)} of {one.n}"
        axes[0, 0].step(steps, share, DASHES[place % len(DASHES)], where="post", label=shown)
    axes[0, 0].set(
        xlabel="update", ylabel="share of runs that have not solved it", ylim=(-0.03, 1.03)
    )
    figure.legend(**_below(len(each)))
    return figure


def _below(entries: int) -> dict[str, object]:
    """A legend under the panels, in as many columns as have room."""
    return {"loc": "outside lower center", "ncols": min(entries, 2)}
