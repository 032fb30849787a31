"""Figures of DecayNet: cobwebs of catch and release, the gates of an LSTM that adds, violins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor, nn

from attractor.dynamics import cell_map, cobweb, equilibria, expression, gates
from attractor.dynamics.plots import COLOURS, draw_cobweb, draw_violins, subplots
from attractor.models import SequenceTagger
from attractor.reproduction.outcomes import stored
from attractor.training import fit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS: tuple[tuple[str, float, Sequence[float], Sequence[float]], ...] = (
    ("unregulated", 1.0, (1, 0.25, 1), (1, 0, 0.75)),
    ("large constant f", 1.0, (0.9, 0.9, 0.9), (1, 0.75, 0.5)),
    ("small constant f", 2.0, (0.25, 0.25, 0.25), (1, 0.75, 0.15)),
)
"""A name, where the cell state starts, and the gates f and i of three steps."""


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


def figure_5() -> Figure:
    """The cobwebs of 0.5 x and 1.5 x: a sink and a source."""
    return maps([("0.5*x", 3.5), ("1.5*x", 0.35)], 4.0)


def figure_2() -> Figure:
    """Three rows of gates: each panel is one step of the cell state, after those before it."""
    figure, axes = subplots(3, 3, size=2.4, sharex=True, sharey=True)
    for row, (name, state, f, i) in zip(axes, ROWS, strict=True):
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


def additions(many: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """Pairs of numbers as bits ``(many, 16, 2)``, lowest first, and the bits of their sums."""
    top = 2**16 - 1
    first = torch.randint(round(top / 2) + 1, (many,), generator=generator)
    second = torch.randint(top // 2 + 1, (many,), generator=generator)
    places = torch.arange(16)
    x = torch.stack([first, second], -1)[:, None, :] >> places[None, :, None] & 1
    y = (first + second)[:, None] >> places & 1
    return x.float(), y[..., None].float()


class Adder(nn.Module):
    """An LSTM that answers at each step with the tanh of one number; rounded, it is a bit."""

    def __init__(self, hidden: int, generator: Generator) -> None:
        super().__init__()
        self.tagger = SequenceTagger("lstm", 2, hidden, 1, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = torch.tanh(self.tagger(x))
        return answer


def trained_adder(steps: int = 3000) -> tuple[Adder, float]:
    """An adder of 32 units after SGD with rate 0.1, and the share of sums that it has right."""
    generator = Generator().manual_seed(0)
    model = Adder(32, generator)
    x, y = additions(4000, generator)

    def loss(answer: Tensor, right: Tensor) -> Tensor:
        return (answer - right).square().sum(1).mean()

    sgd = {"name": "sgd", "lr": 0.1}
    fit(model, (x, y), optimiser=sgd, loss=loss, steps=steps, batch_size=10)
    x, y = additions(1000, Generator().manual_seed(1))
    with torch.no_grad():
        right = (model.eval()(x).round() == y).flatten(1).all(1)
    return model, float(right.float().mean())


def figure_6(steps: int = 3000) -> Figure:
    """Forget gates 2, 12, 22 and 32 of an LSTM that adds, while it adds two pairs."""
    model, share = trained_adder(steps)
    x, _ = additions(2, Generator().manual_seed(2))
    f = gates(model.tagger.recurrent, x.movedim(1, 0)).gate("f")
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
    found = stored("002-table-2")
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
