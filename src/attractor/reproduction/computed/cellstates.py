"""Cell states along sequences: what a forget gate does, and one that can only fall."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from attractor.cells import CELLS
from attractor.dynamics import Gates, decay_claims, gates, phases
from attractor.models import SequenceClassifier
from attractor.reproduction.computed.found import Found
from attractor.reproduction.computed.growing import by_rows, trained
from attractor.tasks.streams import split_images

SEEDS, STEPS, EARLY = range(10), 500, 100


def started(name: str, seed: int, steps: int, **options: Any) -> tuple[Any, Tensor]:
    """An untrained cell of 32 units, and normal inputs ``(steps, 10, 4)`` of the seed."""
    x = torch.randn(steps, 10, 4, generator=Generator().manual_seed(100 + seed))
    kind: Any = CELLS[name]
    return kind(4, 32, generator=Generator().manual_seed(seed), **options), x


def answers(cell: Any, found: Gates, x: Tensor) -> float:
    """How much the last output changes where the last input is that of another sequence."""
    before = type(cell.initial_state(1))(**{key: h[-1] for key, h in found.before.items()})
    with torch.no_grad():
        other, _ = cell.double()(x[-1].flip(0).double(), before)
    return float((other - found.states["h"][-1]).abs().mean())


def carousel(data: Path | None = None) -> Iterator[Found]:
    """Cell states without a forget gate and with one, on random inputs (000, section 3.1.3.2)."""
    for seed in SEEDS:
        for name, row in (("lstm1997", "LSTM of 1997"), ("lstm", "LSTM")):
            cell, x = started(name, seed, STEPS)
            found = gates(cell, x)
            c = found.states["c"].abs()
            squashed = torch.tanh(c[-1])
            for when, after in (("", STEPS), (f", step {EARLY}", EARLY)):
                yield Found(row + when, "mean |c|", float(c[after - 1].mean()), seed)
            full = float((squashed > 0.95).double().mean())
            yield Found(row, "share of |tanh(c)| above 0.95", full, seed)
            yield Found(row, "mean slope of tanh at c", float((1 - squashed**2).mean()), seed)
            yield Found(row, "change of h by its input", answers(cell, found, x), seed)


def decays(data: Path | None = None) -> Iterator[Found]:
    """Forget gates of untrained DecayNets on 100 random inputs (000, section 4.1.4)."""
    for seed in SEEDS:
        rising = decay_claims(*started("decaynet", seed, 100)).rising
        yield Found("DecayNet, U(-1, 1)", "share of gates that rise", rising, seed)


def dichotomy(data: Path | None = None) -> Iterator[Found]:
    """Cell states of DecayNets that learnt digits row by row (000, section 4.1.4.2).

    Each has 32 units and 300 updates by Adam on the digits 0 to 4.
    """
    task = split_images(dataset="digits", size=5, root=data).arrays()[0]
    rows = by_rows(task)
    for seed in SEEDS:
        model: Any = SequenceClassifier(
            "decaynet", 8, 32, 10, generator=Generator().manual_seed(seed)
        )
        yield Found("DecayNet", "accuracy", trained(model, rows, seed), seed)
        told = decay_claims(model.recurrent.cells[0], rows.test.x.movedim(0, 1))
        yield Found("units whose gate ends above 1/2", "share", told.kept, seed)
        yield Found("units whose gate ends above 1/2", "mean |c| at the end", told.large, seed)
        yield Found("units whose gate ends below 1/2", "mean |c| at the end", told.small, seed)


def releases(data: Path | None = None) -> Iterator[Found]:
    """Where cell states grow, and how far, on random inputs (000, section 4.2.6).

    Cells with two gates have no forget bias, so that f > 1 - i at about half of the steps. In the
    row "always" it is 3, and the gates release at nearly all.
    """
    for seed in SEEDS:
        for name in ("lstm", "ihc_lstm", "irc_lstm"):
            cell, x = started(name, seed, STEPS, forget_bias=0.0)
            told = phases(gates(cell, x))
            row = CELLS[name].__name__.removesuffix("Cell")
            for where, share in (
                ("f > 1 - i", told.grows_in_release),
                ("f < 1 - i", told.grows_in_catch),
            ):
                yield Found(f"{row}, {where}", "share of steps that grow", share, seed)
        cell, x = started("lstm", seed, STEPS, forget_bias=3.0)
        found = gates(cell, x)
        c = found.states["c"].abs()
        yield Found("LSTM, always", "share of steps that release", phases(found).released, seed)
        grown = float(c[-1].mean() / c[EARLY - 1].mean())
        yield Found("LSTM, always", f"growth from step {EARLY} to {STEPS}", grown, seed)
        yield Found("LSTM, always", "largest magnitude", float(c.max()), seed)
        cell, x = started("gru", seed, STEPS)
        largest = float(gates(cell, x).states["h"].abs().max())
        yield Found("GRU", "largest magnitude", largest, seed)


def substituted(data: Path | None = None) -> Iterator[Found]:
    """An LSTM that has no hidden state but o tanh(c) of the last step (000, table 3.2)."""
    cell, x = started("lstm", 0, 50)
    cell, x = cell.double(), x.double()
    state = cell.initial_state(10)
    o = c = torch.zeros(10, 32).double()
    error = 0.0
    with torch.no_grad():
        for now in x:
            h, state = cell(now, state)
            told = F.linear(now, cell.weight_ih, cell.bias)
            told = told + F.linear(o * torch.tanh(c), cell.weight_hh)
            i, f, a, o = told.chunk(4, dim=-1)
            i, f, a, o = i.sigmoid(), f.sigmoid(), a.tanh(), o.sigmoid()
            c = f * c + i * a
            error = max(error, float((o * torch.tanh(c) - h).abs().max()))
    yield Found("LSTM, hidden state written out", "largest error", error)
