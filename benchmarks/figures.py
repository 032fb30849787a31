"""The figures of the papers, drawn from runs: means over seeds with 95% intervals, or the seeds.

    pip install -e ".[figures]" -c constraints.txt
    python benchmarks/figures.py RUNS [--out docs/reproduction/figures] [--only figure-6.3]

Each experiment has a folder in RUNS, as `attractor run` writes it; figures whose runs are not there
are left out. Figures 6.8, 6.11 and 6.12 are drawn by benchmarks/inside.py.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure as MplFigure

from attractor.results import curve
from attractor.runs.read import Run, load_runs

STYLE: Any = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "attractor",
}


@dataclass(frozen=True)
class Panel:
    """One measure of some variants by step."""

    title: str
    metric: str
    labels: Sequence[str]
    split: str


@dataclass(frozen=True)
class Figure:
    """Panels side by side, of the runs of one experiment."""

    experiment: str
    panels: Sequence[Panel]
    losses: bool = False
    """Losses by update on a log axis; else accuracies by task."""


def replay(setting: str) -> list[str]:
    of = ("MetaSGD-CL", "ER", "ER, lr 0.1", "ER, balanced, lr 0.02")
    return [f"{method}, {setting}" for method in of]


def both(labels: Sequence[str]) -> list[Panel]:
    return [
        Panel("the first task", "task_1", labels, "test"),
        Panel("mean of the tasks so far", "accuracy", labels, "test"),
    ]


def averages(settings: Sequence[str]) -> list[Panel]:
    return [Panel(setting, "accuracy", replay(setting), "test") for setting in settings]


SCENARIO_1 = (
    "SGD 0.01",
    "SGD 0.01, momentum",
    "Adam 0.01",
    "LSTM",
    "LSTM, released",
    "MTL2L",
)
SCENARIO_2 = (
    *SCENARIO_1[:3],
    "LSTM, from KMNIST",
    "LSTM, released, from KMNIST",
    "LSTM, from both",
    "MTL2L, from both",
)
METHODS = ("MetaSGD-CL", "ER", "GEM", "EWC, strength 1", "HAT, 400 wide, lr 0.05", "Singular")

FIGURES = {
    "figure-6.3": Figure("permuted-mnist", both([*METHODS, "ER, balanced, lr 0.02"])),
    "figure-6.5": Figure("permuted-mnist-rings", averages(["ring 1000", "ring 250", "ring 100"])),
    "figure-6.6": Figure(
        "permuted-mnist-few", averages(["100 updates", "50 updates", "25 updates"])
    ),
    "figure-6.7": Figure("permuted-mnist-noise", averages(["noise 10%", "noise 30%", "noise 50%"])),
    "figure-6.13": Figure(
        "permuted-mnist-networks",
        both(["HCN", "MLP", "Large-MLP", "Res-MLP", "Joint (oracle) + MLP"]),
    ),
    **{
        f"mtl2l-{name}": Figure(
            experiment, [Panel("training loss", "loss", labels, "train")], losses=True
        )
        for name, experiment, labels in (
            ("mnist", "mtl2l-scenario-1", SCENARIO_1),
            ("fashion", "mtl2l-scenario-1-fashion", SCENARIO_1),
            ("kmnist", "mtl2l-scenario-1-kmnist", SCENARIO_1),
            ("cifar10", "mtl2l-scenario-2", SCENARIO_2),
        )
    },
}


def draw(figure: Figure, runs: Sequence[Run], path: Path) -> None:
    size = (max(3.4 * len(figure.panels) + 0.6, 5.5), 3.5)
    fig, axes = plt.subplots(
        1, len(figure.panels), sharey=True, squeeze=False, figsize=size, layout="constrained"
    )
    done = [run for run in runs if run.status == "done"]
    for ax, panel in zip(axes[0], figure.panels, strict=True):
        for place, label in enumerate(panel.labels):
            if shown := [run for run in done if run.label == label]:
                draw_line(ax, shown, figure, panel, f"C{place}")
        ax.set(title=panel.title, xlabel="updates" if figure.losses else "tasks learnt")
    if figure.losses:
        axes[0, 0].set(ylabel="loss", yscale="log")
    else:
        axes[0, 0].set(ylabel="accuracy, %")
    handles, labels = axes[0, -1].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=3)
    save(fig, path)


def save(fig: MplFigure, path: Path) -> None:
    """Write a figure as the same bytes each time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, metadata={"Date": None})
    plt.close(fig)
    print(path)


def draw_line(ax: Axes, runs: Sequence[Run], figure: Figure, panel: Panel, colour: str) -> None:
    (line,) = curve(runs, panel.split, panel.metric, log=figure.losses).lines
    of_a_task = runs[0].config["train"]["steps"]
    scale, x = (1, line.steps) if figure.losses else (100, line.steps / of_a_task)
    name = line.label.removesuffix(f", {panel.title}")
    ax.plot(x, scale * line.mean, label=f"{name} (n = {line.n.max()})", color=colour)
    if figure.losses:  # a band would hide that some seeds diverge and others do not
        for run in runs:
            series = run.series(panel.split, panel.metric)
            ax.plot(list(series), list(series.values()), color=colour, alpha=0.35, linewidth=0.6)
    else:
        low, high = scale * line.low, scale * line.high
        ax.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/reproduction/figures"))
    parser.add_argument("--only", choices=list(FIGURES))
    asked = parser.parse_args()
    mpl.use("svg")
    with mpl.rc_context(STYLE):
        for name, figure in FIGURES.items():
            folder = asked.runs / figure.experiment
            if asked.only in (None, name) and folder.is_dir():
                draw(figure, load_runs([folder]), asked.out / f"{name}.svg")


if __name__ == "__main__":
    main()
