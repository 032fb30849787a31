"""What is done of a case: a layer, its plain loop, torch's own layers, and those of peers."""

import importlib
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attractor.bench.timing import Work
from attractor.cells import Recurrent
from attractor.cells.layer.unroll import unroll
from attractor.results.speed import Case

Layer = Callable[[Tensor], Tensor]

PEERS = {
    "torchrecurrent": ("FastGRNN", "JANET", "OriginalLSTM", "TLSTM"),
    "sru": ("SRU",),
}
"""Other libraries whose layers are called as ours, with those of their layers that we have too."""


def peers() -> Iterator[str]:
    """The layers of other libraries that are installed: ``sru.SRU``."""
    for library, layers in PEERS.items():
        try:
            with warnings.catch_warnings(action="ignore"):
                found = importlib.import_module(library)
        except Exception:  # noqa: S112 - one that is broken is as good as none
            continue
        yield from (f"{library}.{layer}" for layer in layers if hasattr(found, layer))


def passes(case: Case) -> dict[str, Callable[[int], Work]]:
    """What is done in turns, by name: each makes a pass of so many steps."""
    steps, batch, inputs, units = case.shape
    units = fitting(case.cell, units)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(steps, batch, inputs, generator=generator)
    layers: dict[str, Layer] = {}
    library, _, name = case.cell.rpartition(".")
    if library:
        made = getattr(importlib.import_module(library), name)(inputs, units, num_layers=1)
        layers["layer"] = _first_of(made)
    else:
        ours = Recurrent(case.cell, inputs, units, generator=generator)
        layers["layer"], layers["eager"] = _first_of(ours), _looped(ours.cells[0])
    layers["lstm"], layers["gru"] = map(_first_of, (nn.LSTM(inputs, units), nn.GRU(inputs, units)))
    do = trained if case.way == "training" else forward
    return {name: partial(_first_steps, do, layer, x) for name, layer in layers.items()}


def _first_steps(do: Callable[[Layer, Tensor], Work], layer: Layer, x: Tensor, steps: int) -> Work:
    return do(layer, x[:steps])


def fitting(cell: str, units: int) -> int:
    """As many units, or the next power of two for cells that need one.

    Example:
        >>> fitting("lstm", 100), fitting("eurnn", 100), fitting("goru", 64)
        (100, 128, 64)
    """
    return 1 << (units - 1).bit_length() if cell in ("eurnn", "goru") else units


def forward(layer: Layer, x: Tensor) -> Work:
    """A pass without gradients."""

    def work() -> None:
        with torch.no_grad():
            layer(x)

    return work


def trained(layer: Layer, x: Tensor) -> Work:
    """A pass there and back."""
    return lambda: layer(x).sum().backward()  # type: ignore[no-untyped-call]


def _first_of(layer: Any) -> Layer:
    return lambda x: layer(x)[0]


def _looped(cell: Any) -> Layer:
    """One cell in the plain time loop, whether it has a kernel or not."""
    return lambda x: unroll(cell, cell.prepare(x), cell.initial_state(x.shape[1])).output
