"""Figures of DecayNet: cobwebs of catch and release, the gates of an LSTM that adds, violins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from attractor.dynamics import cell_map, cobweb, equilibria, expression
from attractor.dynamics.plots import COLOURS, draw_cobweb, draw_violins, subplots
from attractor.report.papers.trainings import ended, losses
from attractor.reproduction.computed.adding import adder_gates, trained_adder
from attractor.reproduction.computed.systems import CELL_STATES
from attractor.reproduction.outcomes import stored

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def maps(texts: Sequence[tuple[str, float]], reach: float) -> Figure:
    """A cobweb for each map, as text, from its start."""
    figure, axes = subplots(1, len(texts), size=3)
    for place, (ax, (text, start)) in enumerate(zip(axes[0], texts, strict=True)):
        step = expression(text)
        web = cobweb(step, start, steps=5, low=-reach, high=reach)
        title = f"({'abc'[place]}) y = {text.replace('*', '')}"
        draw_cobweb(web, ax, found=equilibria(step, -reach, reach), title=title)
        ax.set_ylim(-reach, reach)
    axes[0, 0].legend(loc="upper left")
    return figure


def figure_1() -> Figure:
    """Catch and release: 0.5 x draws to the origin, tanh(3 x) drives away from it."""
    return maps([("0.5*x", 0.9), ("tanh(3*x)", 0.05)], 1.2)


def figure_3() -> Figure:
    """Stored quick runs on permuted pixels, 14 x 14, 500 updates: losses, and the ends alone."""
    plain = {"DecayNet": "DecayNet", "LSTM": "LSTM"}
    normalised = {f"{name}, batch norm": f"{name}, batch norm" for name in plain}
    shown = ("psmnist-decaynet-quick", {**normalised, **plain})
    return ended({"permuted MNIST, 14 x 14": shown}, "test")


def figure_4() -> Figure:
    """Stored quick runs: a perceptron trained by learned optimisers, of two forms, and Adam."""
    forms = {
        form: (
            "decaynet-figure-4-quick",
            {f"DecayNet, {form}": "DecayNet", f"LSTM, {form}": "LSTM", "Adam 0.002": "Adam 0.002"},
        )
        for form in ("global", "coordinate-wise")
    }
    return losses(forms)


def figure_5() -> Figure:
    """The cobwebs of 0.5 x and 1.5 x: a sink and a source."""
    return maps([("0.5*x", 3.5), ("1.5*x", 0.35)], 4.0)


def figure_2() -> Figure:
    """Three rows of gates: each panel is one step of the cell state, after those before it."""
    figure, axes = subplots(3, 3, size=2.4, sharex=True, sharey=True)
    for row, (name, state, f, i) in zip(axes, CELL_STATES, strict=True):
        for time, ax in enumerate(row):
            step = cell_map(f[time], i[time])
            before = cell_map(f[time - 1], i[time - 1]) if time else None
            web = cobweb(step, state, steps=1, low=-3, high=3, before=before)
            grew = "grows" if abs(float(web.states[-1])) > abs(state) else "shrinks"
            title = f"f = {f[time]:g}, i = {i[time]:g}: {grew}"
            draw_cobweb(web, ax, title=title)
            ax.set_ylim(-3, 3)
            ax.label_outer()
            state = float(web.states[-1])
        row[0].set_ylabel(f"{name}\ny")
    axes[0, 1].legend(loc="upper left", fontsize=6)
    return figure


def figure_6() -> Figure:
    """Forget gates 2, 12, 22 and 32 of an LSTM that adds, while it adds two pairs."""
    _, share = trained_adder()
    f = adder_gates(2)
    figure, axes = subplots(2, 4, size=2, sharex=True, sharey=True)
    for pair, row in enumerate(axes):
        for unit, ax in zip((2, 12, 22, 32), row, strict=True):
            ax.plot(range(1, 17), f[:, pair, unit - 1].numpy(), ".-", color=COLOURS[pair])
            ax.set(title=f"pair {pair + 1}, gate {unit}", ylim=(-0.05, 1.05))
        row[0].set_ylabel("f")
    for ax in axes[1]:
        ax.set_xlabel("step")
    figure.suptitle(f"{share:.0%} of 1,000 new sums are right")
    return figure


def figure_7() -> Figure:
    """Accuracies row by row over seeds, LSTM beside DecayNet, of the runs that are stored."""
    found = stored("rows-mnist")
    panels = [
        ("MNIST", "32", "32"),
        ("MNIST", "64", "64"),
        ("Fashion-MNIST", "64", "48"),
    ]
    figure, axes = subplots(1, 3, size=3)
    for ax, (data, *units) in zip(axes[0], panels, strict=True):
        groups = {}
        for cell, size in zip(("LSTM", "DecayNet"), units, strict=True):
            values = found.final("rows-mnist", f"{data}, {cell} {size}", "accuracy")
            groups[f"{cell} {size}\n{len(values)} seeds"] = 100 * torch.tensor([*values.values()])
        draw_violins(groups, ax, y="accuracy, percent")
        ax.set(title=data)
    return figure
