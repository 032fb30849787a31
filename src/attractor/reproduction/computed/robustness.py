"""Hopfield networks and the GRU: what attracts states, and what the steps of the ladder keep."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor

from attractor.cells import GRUCell
from attractor.dynamics import LADDER, hopfield_step, recall
from attractor.reproduction.computed.found import Found

SEEDS, UNITS, PATTERNS = range(10), 64, 4
COLUMN = "distance of two states over that at first"


def as_gru(W: Tensor, zeta: float) -> GRUCell:
    """A GRU whose gates are held at zeta and at 1: its candidate is tanh(W h)."""
    n = len(W)
    cell = GRUCell(1, n, dtype=torch.float64)
    gates: Any = cell
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.zero_()
        gates.bias[:n], gates.bias[n : 2 * n] = 40.0, math.log(zeta / (1 - zeta))
        gates.weight_hh[2 * n :] = W
    return cell


def apart(cell: Any, x: Tensor, states: Tensor) -> float:
    """How far two states ``(2, batch, units)`` are after inputs x, over how far they were."""
    h, other = states
    with torch.no_grad():
        for now in x:
            h, other = cell(now, h)[1], cell(now, other)[1]
    return float(((h - other).norm(dim=1) / (states[0] - states[1]).norm(dim=1)).mean())


def hopfield(data: Path | None = None) -> Iterator[Found]:
    """Equilibria of a Hopfield network, and of GRUs (000, section 4.2.2).

    Four patterns of 64 units, a fifth of each flipped; below beta = 1 nothing can be stored. GRUs
    are those of the package before training, and with recurrent weights eight times as large.
    """
    wrong = 0.0
    for seed in SEEDS:
        g = Generator().manual_seed(seed)
        stored = torch.randn(PATTERNS, UNITS, generator=g).sign().double()
        noise = torch.where(torch.rand(stored.shape, generator=g) < 0.2, -1.0, 1.0)
        for row, beta in (("beta = 4", 4.0), ("beta = 0.5", 0.5)):
            overlaps = recall(stored, stored * noise, beta=beta).overlaps[-1].diagonal()
            yield Found(
                f"Hopfield, {row}", "overlap with the pattern", float(overlaps.mean()), seed
            )
        starts = 2 * torch.rand(20, UNITS, generator=g).double() - 1
        step = hopfield_step(stored, 0.1, 4.0)
        W = 4.0 * stored.T @ stored / UNITS
        with torch.no_grad():
            gru = as_gru(W, 0.1)(torch.zeros(20, 1).double(), starts)[0]
        wrong = max(wrong, float((gru - step(starts)).abs().max()))
        for row, size in (("GRU, untrained", 1.0), ("GRU, weights times 8", 8.0)):
            cell = GRUCell(1, 32, generator=Generator().manual_seed(seed), dtype=torch.float64)
            with torch.no_grad():
                cell.weight_hh.mul_(size)
            states = 2 * torch.rand(2, 20, 32, generator=g).double() - 1
            yield Found(row, COLUMN, apart(cell, torch.zeros(30, 20, 1).double(), states), seed)
    yield Found("GRU of held gates", "largest error of a step", wrong)


RUNGS = {"gru": "GRU", "linear": "without tanh", "input": "gates of x only", "irc": "IRC-GRU"}


def ladder(data: Path | None = None) -> Iterator[Found]:
    """Whether each rung forgets its start, over 30 random inputs (000, section 4.2.3)."""
    for seed in SEEDS:
        g = Generator().manual_seed(100 + seed)
        x = torch.randn(30, 20, 4, generator=g).double()
        states = 2 * torch.rand(2, 20, 32, generator=g).double() - 1
        for key, row in RUNGS.items():
            make: Any = LADDER[key]
            cell = make(4, 32, generator=Generator().manual_seed(seed), dtype=torch.float64)
            yield Found(row, COLUMN, apart(cell, x, states), seed)
