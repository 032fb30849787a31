"""Put normalisers and noise on a cell: what `Recurrent` takes in place of the cell's name."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Generator

from attractor.cells.base import Cell
from attractor.cells.layer.options import CellFactory, name_of, resolve
from attractor.cells.wrap.noise import RecurrentDropoutCell, ZoneoutCell
from attractor.cells.wrap.normalise import BatchNormCell, LayerNormCell
from attractor.errors import InputError

Wrap = Callable[[Any], Cell[Any, Any]]


@dataclass(frozen=True)
class Composed:
    """A cell and what goes on it, called like a cell's class with sizes and options.

    The cell is normalised first, then its candidate is dropped, then its state is zoned out, in
    whichever order these were asked for: so the same request always makes the same cell.
    """

    cell: CellFactory
    normaliser: Wrap | None = None
    dropout: Wrap | None = None
    zoneout: Wrap | None = None

    def __post_init__(self) -> None:
        # it has the cell's options and, in messages about them, the cell's name
        object.__setattr__(self, "__signature__", inspect.signature(self.cell))
        object.__setattr__(self, "__name__", name_of(self.cell))

    def __call__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> Cell[Any, Any]:
        made = self.cell(
            input_size, hidden_size, generator=generator, device=device, dtype=dtype, **options
        )
        for wrap in (self.normaliser, self.dropout, self.zoneout):
            made = made if wrap is None else wrap(made)
        return made


def layer_norm(cell: str | CellFactory) -> Composed:
    """Normalise over the units: see `LayerNormCell`.

    Args:
        cell: a key of ``CELLS``, a `Cell` class, or what another function of this module returned.

    Example:
        >>> from attractor.cells import Recurrent
        >>> layer = Recurrent(zoneout(layer_norm("lstm"), 0.5, 0.05), 28, 128)
        >>> [type(module).__name__ for module in layer.cells.modules()][1:4]
        ['ZoneoutCell', 'LayerNormCell', 'LSTMCell']
    """
    return _with(cell, "normaliser", LayerNormCell)


def batch_norm(cell: str | CellFactory, max_steps: int, *, momentum: float = 0.1) -> Composed:
    """Normalise over the batch at each step: see `BatchNormCell`."""
    return _with(cell, "normaliser", partial(BatchNormCell, max_steps=max_steps, momentum=momentum))


def zoneout(cell: str | CellFactory, cell_rate: float, hidden_rate: float) -> Composed:
    """Keep some units at their old value: see `ZoneoutCell`."""
    wrap = partial(ZoneoutCell, cell_rate=cell_rate, hidden_rate=hidden_rate)
    return _with(cell, "zoneout", wrap)


def recurrent_dropout(
    cell: str | CellFactory, rate: float, *, per: Literal["step", "sequence"] = "step"
) -> Composed:
    """Do not write some units of the candidate: see `RecurrentDropoutCell`."""
    return _with(cell, "dropout", partial(RecurrentDropoutCell, rate=rate, per=per))


def compose(
    cell: str | CellFactory,
    *,
    layer_norm: bool = False,
    batch_norm: int = 0,
    zoneout: tuple[float, float] | None = None,
    recurrent_dropout: float = 0.0,
) -> Composed:
    """All of the above from plain values, as a configuration has them.

    Args:
        cell: a key of ``CELLS``, a `Cell` class, or what another function of this module returned.
        layer_norm: normalise over the units.
        batch_norm: normalise over the batch, with statistics for this many steps; 0 for not.
        zoneout: the rates of the cell state and of the hidden state.
        recurrent_dropout: the rate at which units of the candidate are dropped.

    Example:
        >>> cell = compose("gru", zoneout=(0.0, 0.1), recurrent_dropout=0.25)(3, 8)
        >>> type(cell).__name__, type(cell.cell).__name__
        ('ZoneoutCell', 'RecurrentDropoutCell')
    """
    made = _composed(cell)
    if layer_norm:
        made = _with(made, "normaliser", LayerNormCell)
    if batch_norm:
        made = _with(made, "normaliser", partial(BatchNormCell, max_steps=batch_norm))
    if recurrent_dropout:
        made = _with(made, "dropout", partial(RecurrentDropoutCell, rate=recurrent_dropout))
    if zoneout is not None:
        if not isinstance(zoneout, list | tuple) or len(zoneout) != 2:
            raise InputError(
                "expected zoneout to be two rates, of the cell state and of the hidden state, but "
                f"got {zoneout!r}. Try zoneout=(0.0, 0.1)."
            )
        cell_rate, hidden_rate = zoneout
        wrap = partial(ZoneoutCell, cell_rate=cell_rate, hidden_rate=hidden_rate)
        made = _with(made, "zoneout", wrap)
    return made


def _composed(cell: str | CellFactory) -> Composed:
    return cell if isinstance(cell, Composed) else Composed(resolve(cell))


def _with(cell: str | CellFactory, part: str, wrap: Wrap) -> Composed:
    composed = _composed(cell)
    if getattr(composed, part) is not None:
        raise InputError(
            f"expected one {part} on {name_of(composed)}, but it has one already. Leave one out."
        )
    changed: dict[str, Any] = {part: wrap}
    return replace(composed, **changed)
