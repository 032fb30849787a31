"""Figures of Chandar's thesis: wormholes, the memory of an NRU, gradients, lifelong learning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from attractor.dynamics import path_lengths, shortest_paths
from attractor.dynamics.plots import draw_heatmap, draw_histogram, draw_lines, subplots
from attractor.report.papers.kept import levels, matrices, measures, race_of, races_of
from attractor.report.papers.trainings import ended, evaluated
from attractor.reproduction.computed.adding import copier, memory_changes
from attractor.reproduction.races import RACES, Race
from attractor.tasks import CopyMemory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIFELONG = {
    "copying": "lifelong-copy-quick",
    "recalling": "lifelong-recall-quick",
    "reading strokes": "lifelong-strokes-quick",
}
GROWING = {
    "Small LSTM": "small LSTM",
    "Small LSTM, GEM": "small, GEM",
    "Small LSTM, GEM, Net2Net": "small, GEM, grows",
    "Large LSTM": "large LSTM",
    "Large LSTM, GEM": "large, GEM",
}
PIXELS = {
    "NRU": "NRU",
    "GORU": "GORU",
    "GRU": "GRU",
    "JANET": "JANET",
    "LSTM": "LSTM",
    "LSTM, chrono": "LSTM, chrono",
    "SRU (statistical)": "statistical SRU",
    "RNN-orth": "RNN, orthogonal",
    "RNN-id": "RNN, identity",
}
SIZES = {
    "heads": {"k 1": "1", "k 4, m 64, h 80": "4", "k 9": "9", "k 16": "16"},
    "memory": {"m 36": "36", "k 4, m 64, h 80": "64", "m 144": "144"},
    "units": {"h 30": "30", "k 4, m 64, h 80": "80", "h 160": "160"},
}


def figure_3_3(simulations: int = 10_000) -> Figure:
    """Path lengths in the cells of TARDIS and uMANN: 200 steps, 50 cells."""
    figure, axes = subplots(1, 2, size=3, sharey=True)
    for ax, (memory, name) in zip(axes[0], (("tardis", "TARDIS"), ("umann", "uMANN")), strict=True):
        found = path_lengths(memory, simulations=simulations)  # type: ignore[arg-type]
        draw_histogram(found.lengths, ax, expected=found.expected, title=name)
    return figure


def figure_3_5(simulations: int = 2_000) -> Figure:
    """The shortest path from step 50 back to 5, and its part outside wormholes, by memory size."""
    sizes = range(1, 51, 2)
    figure, axes = subplots(1, 2, size=3)
    totals: dict[str, list[float]] = {}
    outside: dict[str, list[float]] = {}
    names: list[tuple[Any, str]] = [("tardis", "TARDIS"), ("umann", "uMANN"), ("urmann", "urMANN")]
    for memory, name in names:
        found = [shortest_paths(memory, cells=k, simulations=simulations) for k in sizes]
        totals[name] = [float(one.lengths.double().mean()) for one in found]
        outside[name] = [float(one.outside.double().mean()) for one in found]
    for ax, series, title in zip(
        axes[0], (totals, outside), ("(a) shortest path", "(b) outside wormholes"), strict=True
    ):
        draw_lines(series, ax, x="cells", y="mean length", title=title)
        ticks = range(0, len(sizes), 5)
        ax.set_xticks(list(ticks), [str(sizes[tick]) for tick in ticks])
    return figure


def figure_3_7() -> Figure:
    """Reading two digits stroke by stroke: stored quick runs of 600 updates, evaluated thrice."""
    labels = {name: name for name in ("LSTM", "TARDIS, REINFORCE", "TARDIS, Gumbel")}
    return evaluated("strokes-quick", labels, "error", "validation error of a digit")


def figure_4_1() -> Figure:
    """The share of stored runs that have not yet solved copying after 100 steps, by updates."""
    return race_of(RACES["copy-race"])


def figure_4_2(lag: int = 30, steps: int = 1500) -> Figure:
    """How much the memory of an NRU changes at each step of the copying task."""
    task = CopyMemory(lag)
    model, rows = copier("nru", task, steps)
    change = memory_changes(model, task)
    figure, axes = subplots(1, 2, size=3)
    draw_heatmap(change[:, 0], axes[0, 0], title="change of each number")
    axes[0, 1].plot(change.mean((1, 2)).numpy(), color="black")
    axes[0, 1].set(xlabel="step", ylabel="mean change", title="over 20 sequences")
    losses = [row["loss"] for row in rows if row.get("split") == "train"]
    figure.suptitle(
        f"NRU on copying, T = {lag}, {steps} updates: loss {losses[-1]:.4f} "
        f"(without memory {task.baseline:.4f})"
    )
    return figure


def figure_4_3() -> Figure:
    """The share of stored quick runs that have not yet solved copying after 1 to T steps."""
    return race_of(Race("variable-copy-quick", "NRU"))


def figure_4_4() -> Figure:
    """NRU beside JANET on four copying tasks: the share of stored quick runs not yet done."""
    tasks = {
        "copying": "copy-quick",
        "longer": "copy-200-quick",
        "variable": "variable-copy-quick",
        "variable, longer": "variable-copy-200-quick",
    }
    rows = {"NRU": "NRU", "JANET": "JANET"}
    return races_of({title: Race(name, "NRU", rows) for title, name in tasks.items()})


def figure_4_5() -> Figure:
    """The share of stored quick runs that have not yet solved denoising, by updates."""
    return race_of(Race("denoise-quick", "NRU"))


def figure_4_6() -> Figure:
    """Permuted pixels: stored quick runs, 14 x 14, 1,000 updates; losses, and the ends alone."""
    return ended({"permuted MNIST, 14 x 14": ("psmnist-quick", PIXELS)}, "valid")


def figure_4_7(lag: int = 30, steps: int = 600) -> Figure:
    """Gradient norms on the way, of NRU, JANET and an LSTM with chrono initialisation."""
    task = CopyMemory(lag)
    figure, axes = subplots(1, 2, size=3)
    norms: dict[str, Tensor] = {}
    losses: dict[str, Tensor] = {}
    chosen: list[tuple[str, str, dict[str, Any]]] = [
        ("NRU", "nru", {}),
        ("JANET", "janet", {"t_max": lag + 20}),
        ("LSTM-chrono", "lstm", {"t_max": lag + 20}),
    ]
    for name, cell, options in chosen:
        _, rows = copier(cell, task, steps, **options)
        logged = [row for row in rows if row.get("split") == "train"]
        norms[name] = torch.tensor([row["gradient_norm"] for row in logged])
        losses[name] = torch.tensor([row["loss"] for row in logged])
    draw_lines(norms, axes[0, 0], x="tens of updates", y="norm of the gradient")
    axes[0, 0].set_yscale("log")
    draw_lines(losses, axes[0, 1], x="tens of updates", y="loss")
    return figure


def figure_4_8() -> Figure:
    """The sizes of an NRU: stored quick runs, 7 x 7, 900 updates; losses, and the ends alone."""
    panels = {what: ("psmnist-sensitivity-quick", labels) for what, labels in SIZES.items()}
    return ended(panels, "valid")


def figure_5_1() -> Figure:
    """Reading strokes, level by level: stored quick runs of one LSTM, as far as they came."""
    names = {
        f"{when}_accuracy": f"{what} level{'s' * (when != 'current')}"
        for when, what in (("previous", "previous"), ("current", "current"), ("future", "future"))
    }
    return measures(LIFELONG["reading strokes"], "Small LSTM", names)


def figure_5_2() -> Figure:
    """Stored quick runs, level by level: the accuracy on the level that was just learnt."""
    return levels(LIFELONG, GROWING, "current_accuracy")


def figure_5_3() -> Figure:
    """The same on the levels before it."""
    return levels(LIFELONG, GROWING, "previous_accuracy")


def figure_5_4() -> Figure:
    """The same on the levels after it."""
    return levels(LIFELONG, GROWING, "future_accuracy")


def figure_5_5() -> Figure:
    """The accuracy on each level of copying after each, means of those runs that came so far."""
    return matrices(LIFELONG["copying"], GROWING, 12)
