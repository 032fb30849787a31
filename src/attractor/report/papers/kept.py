"""Figures of stored runs: courses along tasks and levels, races, and spreads over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import torch

from attractor.dynamics.plots import COLOURS, draw_heatmap, draw_violins, subplots
from attractor.reproduction.outcomes import Outcomes, stored
from attractor.reproduction.races import Race, budgets, curves, named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DASHES = ("-", "--", "-.", ":")
SHORT = {"accuracy": "ACC", "first_task_accuracy": "FA1"}
"""What the thesis calls a measure."""

Course = Mapping[int, Mapping[int, float]]
"""By seed and step, task or level, a number."""


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
            runs = found.series(experiment, label, measure, "test")
            courses = {seed: dict(enumerate(values, start=1)) for seed, values in runs.items()}
            draw_course(ax, courses, place, shown)
        ax.set(xlabel=step, ylabel=f"{name}, percent")
        ax.xaxis.get_major_locator().set_params(integer=True)
    draw_legend(figure, axes[0, 0])
    return figure


def levels(experiments: Mapping[str, str], labels: Mapping[str, str], measure: str) -> Figure:
    """A panel for each experiment: means over seeds after each level, as far as runs came.

    Args:
        experiments: by title, one whose runs learn level by level.
        labels: by variant, the name that is shown.
        measure: that is shown in per cent.
    """
    figure, axes = subplots(1, len(experiments), size=4)
    for ax, (title, experiment) in zip(axes[0], experiments.items(), strict=True):
        found = stored(experiment)
        for place, (label, shown) in enumerate(labels.items()):
            draw_course(ax, _by_level(found, experiment, label, measure), place, shown)
        ax.set(title=title, xlabel="level", ylabel=f"{measure.replace('_', ' ')}, percent")
        ax.xaxis.get_major_locator().set_params(integer=True)
    draw_legend(figure, axes[0, 0])
    return figure


def measures(experiment: str, label: str, names: Mapping[str, str]) -> Figure:
    """Several measures of one variant in one panel: means over seeds after each level.

    Args:
        experiment: whose runs learn level by level.
        label: of the variant.
        names: by measure, the name that is shown.
    """
    found = stored(experiment)
    figure, axes = subplots(1, 1, size=4)
    ax = axes[0, 0]
    for place, (measure, shown) in enumerate(names.items()):
        draw_course(ax, _by_level(found, experiment, label, measure), place, shown)
    ax.set(xlabel="level", ylabel="accuracy, percent")
    ax.xaxis.get_major_locator().set_params(integer=True)
    draw_legend(figure, ax)
    return figure


def matrices(experiment: str, labels: Mapping[str, str], last: int) -> Figure:
    """A map for each variant: the accuracy on each level, after each level.

    Args:
        experiment: whose runs learn level by level.
        labels: by variant, the name that is shown.
        last: the number of levels; those that no run came to are left white.
    """
    found = stored(experiment)
    figure, axes = subplots(1, len(labels), size=3)
    for ax, (label, shown) in zip(axes[0], labels.items(), strict=True):
        values = _matrix(found, experiment, label, last)
        draw_heatmap(values, ax, title=shown, low=0, high=1)
        ticks = range(0, last, 2)
        names = [str(tick + 1) for tick in ticks]
        ax.set_xticks(ticks, names)
        ax.set_yticks(ticks, names)
        ax.set(xlabel="after level", ylabel="accuracy on level")
    return figure


def by_step(
    found: Outcomes, experiment: str, label: str, measure: str, split: str
) -> dict[int, dict[int, float]]:
    """By seed and step, what the runs of a variant logged."""
    wanted = (experiment, label, split, measure)
    logged: dict[int, dict[int, float]] = {}
    for row in found.rows:
        if (row.experiment, row.label, row.split, row.measure) == wanted:
            logged.setdefault(row.seed, {})[row.step] = row.value
    return logged


def _by_level(
    found: Outcomes, experiment: str, label: str, measure: str
) -> dict[int, dict[int, float]]:
    """Of a level that was learnt again after the network grew, the last time."""
    at = by_step(found, experiment, label, "level", "test")
    logged = by_step(found, experiment, label, measure, "test")
    return {
        seed: {int(at[seed][step]): value for step, value in sorted(values.items())}
        for seed, values in logged.items()
    }


def _matrix(found: Outcomes, experiment: str, label: str, last: int) -> torch.Tensor:
    """``(learnt, tested)``: means over the runs that came so far; NaN where there is none."""
    values = torch.full((last, last), torch.nan)
    for tested in range(last):
        runs = _by_level(found, experiment, label, f"task_{tested + 1}").values()
        for learnt in range(last):
            there = [run[learnt + 1] for run in runs if learnt + 1 in run]
            values[learnt, tested] = torch.tensor(there).mean()
    return values


def dash(place: int) -> str:
    """The dash of a line: another one where the colours begin anew."""
    return DASHES[place // len(COLOURS) % len(DASHES)]


def draw_course(ax: Axes, runs: Course, place: int, name: str) -> None:
    """The mean of those runs that came so far, and a deviation to each side if there are two."""
    at = sorted({step for run in runs.values() for step in run})
    values = [
        100 * torch.tensor([run[step] for run in runs.values() if step in run]) for step in at
    ]
    mean = torch.stack([one.mean() for one in values])
    deviation = torch.stack([one.std() if len(one) > 1 else one[0] * 0 for one in values])
    label = f"{name} ({len(runs)} seeds)"
    alone = "o" if len(at) == 1 else ""
    (line,) = ax.plot(at, mean, dash(place), marker=alone, markersize=4, label=label)
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
    _race(axes[0, 0], race)
    draw_legend(figure, axes[0, 0])
    return figure


def races_of(panels: Mapping[str, Race]) -> Figure:
    """The same of several races, by their titles; each panel has its own names."""
    figure, axes = subplots(1, len(panels), size=3.2, sharey=True)
    for ax, (title, race) in zip(axes[0], panels.items(), strict=True):
        _race(ax, race)
        ax.set_title(title)
        ax.legend(loc="center right")
        ax.label_outer()
    return figure


def _race(ax: Axes, race: Race) -> None:
    last, each = budgets(race.experiment), curves(race)
    for place, (label, one) in enumerate(each.items()):
        steps, share = [*one.steps, last[label]], [*one.share, one.share[-1]]
        shown = f"{named(race, label)}: {len(one.at)} of {one.n}"
        ax.step(steps, share, DASHES[place % len(DASHES)], where="post", label=shown)
    ax.set(xlabel="update", ylabel="share of runs that have not solved it", ylim=(-0.03, 1.03))


def draw_legend(figure: Figure, ax: Axes) -> None:
    """The names of a panel under all of them, in as many columns as have room."""
    handles, names = ax.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 2))
