"""Images that trained networks make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Generator, Tensor

from attractor.dynamics.plots import subplots
from attractor.models import DRAW
from attractor.tasks import Generate
from attractor.training import fit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE = 14
DECODERS = {"lstm": "LSTM", "ihc_lstm": "IHC-LSTM"}


def figure_4_5(steps: int = 3000) -> Figure:
    """Digits of 14 by 14 that DRAW makes after 3,000 updates, LSTM and IHC-LSTM as decoders."""
    task = Generate("mnist", side=SIDE, threshold=True)
    figure, axes = subplots(1, 1 + len(DECODERS), size=3)
    data = task.batches(32, generator=Generator().manual_seed(1)).draw().x
    _show(axes[0, 0], data, "data")
    for ax, (cell, name) in zip(axes[0, 1:], DECODERS.items(), strict=True):
        model, bound = drawer(cell, task, steps)
        made = model.generate(32, generator=Generator().manual_seed(2))[-1]
        _show(ax, made, f"{name}: {bound:.0f} nats")
    return figure


def drawer(cell: str, task: Generate, steps: int) -> tuple[DRAW, float]:
    """DRAW with a cell as its decoder after a quick training, and its bound on validation data."""
    model = DRAW(
        (1, SIDE, SIDE),
        64,
        latent_size=8,
        steps=6,
        read=3,
        write=5,
        decoder=cell,
        generator=Generator().manual_seed(0),
    )
    plan: dict[str, Any] = {"batch_size": 64, "clip": 5.0, "eval_every": steps}
    adam = {"name": "adam", "lr": 0.003}
    fitted = fit(model, task, optimiser=adam, steps=steps, eval_batch_size=500, **plan)
    return model, fitted.valid["loss"]


def _show(ax: Any, images: Tensor, title: str) -> None:
    """Four rows of eight images, a line of pixels between them."""
    shown = images.detach().reshape(4, 8, SIDE, SIDE)
    framed = torch.nn.functional.pad(shown, (0, 1, 0, 1), value=0.5)
    grid = framed.movedim(1, 2).reshape(4 * (SIDE + 1), 8 * (SIDE + 1))
    ax.imshow(grid.numpy(), cmap="gray_r", vmin=0, vmax=1)
    ax.set(title=title, xticks=[], yticks=[])
