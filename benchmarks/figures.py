"""Figures 4 and 5 of MTL2L, drawn from full runs: training losses of each seed and their means.

    pip install -e ".[figures]" -c constraints.txt
    python benchmarks/figures.py RUNS [--out docs/reproduction/figures] [--only mtl2l-mnist]

Each experiment has a folder in RUNS, as `attractor run` writes it; figures whose runs are not there
are left out. `attractor figure` draws what stored results suffice for; figures 6.8, 6.11 and 6.12
are drawn by benchmarks/inside.py.
"""

import argparse
from collections.abc import Sequence
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
FIGURES = {
    "mtl2l-mnist": ("mtl2l-scenario-1", SCENARIO_1),
    "mtl2l-fashion": ("mtl2l-scenario-1-fashion", SCENARIO_1),
    "mtl2l-kmnist": ("mtl2l-scenario-1-kmnist", SCENARIO_1),
    "mtl2l-cifar10": ("mtl2l-scenario-2", SCENARIO_2),
}
"""By name, an experiment and its variants that are drawn."""


def draw(labels: Sequence[str], runs: Sequence[Run], path: Path) -> None:
    fig, ax = plt.subplots(figsize=(5.5, 3.5), layout="constrained")
    done = [run for run in runs if run.status == "done"]
    for place, label in enumerate(labels):
        if shown := [run for run in done if run.label == label]:
            draw_line(ax, shown, f"C{place}")
    ax.set(title="training loss", xlabel="updates", ylabel="loss", yscale="log")
    fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    save(fig, path)


def save(fig: MplFigure, path: Path) -> None:
    """Write a figure as the same bytes each time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, metadata={"Date": None})
    plt.close(fig)
    print(path)


def draw_line(ax: Axes, runs: Sequence[Run], colour: str) -> None:
    """The geometric mean, and each seed: a band would hide that some diverge and others do not."""
    (line,) = curve(runs, "train", "loss", log=True).lines
    ax.plot(line.steps, line.mean, label=f"{line.label} (n = {line.n.max()})", color=colour)
    for run in runs:
        series = run.series("train", "loss")
        ax.plot(list(series), list(series.values()), color=colour, alpha=0.35, linewidth=0.6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/reproduction/figures"))
    parser.add_argument("--only", choices=list(FIGURES))
    asked = parser.parse_args()
    mpl.use("svg")
    with mpl.rc_context(STYLE):
        for name, (experiment, labels) in FIGURES.items():
            folder = asked.runs / experiment
            if asked.only in (None, name) and folder.is_dir():
                draw(labels, load_runs([folder]), asked.out / f"{name}.svg")


if __name__ == "__main__":
    main()
