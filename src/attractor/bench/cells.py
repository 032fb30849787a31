"""What is measured of a cell: beside torch's own layers, the loop without kernels, and peers."""

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from attractor.bench.timing import TURNS, Work, best_of, threads
from attractor.cells import CELLS, Recurrent
from attractor.cells.layer.unroll import unroll
from attractor.errors import InputError, unknown

Way = Literal["forward", "training"]
WAYS: tuple[Way, ...] = ("forward", "training")


class Shape(NamedTuple):
    """Steps, sequences, features and units of a layer.

    Example:
        >>> Shape.of("120,10,10,128")
        Shape(steps=120, batch=10, inputs=10, units=128)
        >>> str(Shape(35, 20, 650, 650))
        '35,20,650,650'
    """

    steps: int
    batch: int
    inputs: int
    units: int

    @classmethod
    def of(cls, text: str) -> "Shape":
        """A shape from four numbers with commas between them."""
        parts = text.split(",")
        if len(parts) != 4 or not all(p.strip().isdecimal() and int(p) > 0 for p in parts):
            raise InputError(
                f"expected a shape as steps,batch,inputs,units, but got {text!r}. "
                "Try 120,10,10,128."
            )
        return cls(*map(int, parts))

    def __str__(self) -> str:
        return ",".join(map(str, self))


SHAPES = (
    Shape(784, 100, 1, 100),
    Shape(120, 10, 10, 128),
    Shape(35, 20, 256, 256),
    Shape(100, 1, 10, 64),
    Shape(35, 20, 650, 650),
    Shape(785, 100, 1, 200),
    Shape(120, 10, 10, 70),
    Shape(150, 128, 200, 630),
    Shape(70, 20, 400, 1150),
)
"""Five that a kernel must do well on, and four of published experiments."""
QUICK = (Shape(100, 1, 10, 64), Shape(35, 20, 64, 64))

PEERS = {
    "torchrecurrent": ("LSTM", "GRU", "JANET", "NRU", "FastGRNN"),
    "sru": ("SRU",),
}
"""Other libraries whose layers are called as ours, with those of their layers that we have too."""


class Case(NamedTuple):
    """One thing to measure."""

    cell: str
    shape: Shape
    way: Way
    threads: int

    def __str__(self) -> str:
        with_ = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return f"{self.cell} {self.way} {self.shape}, {with_}"


@dataclass(frozen=True)
class Timed:
    """The best time of a layer, and of those measured in turns with it.

    Args:
        case: what was measured.
        seconds: of the layer.
        eager: of the same cell in the plain loop, or None for a peer's layer.
        lstm: of ``nn.LSTM`` with as many units.
        gru: of ``nn.GRU``.
    """

    case: Case
    seconds: float
    eager: float | None
    lstm: float
    gru: float

    @property
    def to_lstm(self) -> float:
        """How many times as fast as ``nn.LSTM``."""
        return self.lstm / self.seconds

    @property
    def to_gru(self) -> float:
        """How many times as fast as ``nn.GRU``."""
        return self.gru / self.seconds

    @property
    def to_eager(self) -> float | None:
        """How many times as fast as the plain loop."""
        return None if self.eager is None else self.eager / self.seconds


def cases(
    cells: Sequence[str], shapes: Sequence[Shape], numbers_of_threads: Sequence[int]
) -> list[Case]:
    """All there is to measure, with the layers of peers that are installed."""
    for name in cells:
        if name not in CELLS:
            raise unknown("cell", name, CELLS)
    names = [*cells, *peers()]
    return [
        Case(cell, shape, way, number)
        for shape in shapes
        for number in numbers_of_threads
        for cell in names
        for way in WAYS
    ]


def peers() -> Iterator[str]:
    """The layers of other libraries that are installed: ``sru.SRU``."""
    for library, layers in PEERS.items():
        try:
            found = importlib.import_module(library)
        except Exception:  # noqa: S112 - one that is broken is as good as none
            continue
        yield from (f"{library}.{layer}" for layer in layers if hasattr(found, layer))


def measure(case: Case, seconds: float, turns: int = TURNS) -> Timed:
    """Measure one case: its layer in turns with those that it is compared with."""
    with threads(case.threads):
        took = best_of(works(case), seconds, turns)
    return Timed(case, took["layer"], took.get("eager"), took["lstm"], took["gru"])


def works(case: Case) -> dict[str, Work]:
    """What is done in turns, by name."""
    steps, batch, inputs, units = case.shape
    units = fitting(case.cell, units)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(steps, batch, inputs, generator=generator)
    layers: dict[str, Callable[[Tensor], Tensor]] = {}
    library, _, name = case.cell.rpartition(".")
    if library:
        layers["layer"] = _first_of(getattr(importlib.import_module(library), name)(inputs, units))
    else:
        ours = Recurrent(case.cell, inputs, units, generator=generator)
        layers["layer"], layers["eager"] = _first_of(ours), _looped(ours.cells[0])
    layers["lstm"], layers["gru"] = map(_first_of, (nn.LSTM(inputs, units), nn.GRU(inputs, units)))
    do = trained if case.way == "training" else forward
    return {name: do(layer, x) for name, layer in layers.items()}


def fitting(cell: str, units: int) -> int:
    """As many units, or the next power of two for cells that need one.

    Example:
        >>> fitting("lstm", 100), fitting("eurnn", 100), fitting("goru", 64)
        (100, 128, 64)
    """
    return 1 << (units - 1).bit_length() if cell in ("eurnn", "goru") else units


def forward(layer: Callable[[Tensor], Tensor], x: Tensor) -> Work:
    """A pass without gradients."""

    def work() -> None:
        with torch.no_grad():
            layer(x)

    return work


def trained(layer: Callable[[Tensor], Tensor], x: Tensor) -> Work:
    """A pass there and back."""
    return lambda: layer(x).sum().backward()  # type: ignore[no-untyped-call]


def _first_of(layer: Any) -> Callable[[Tensor], Tensor]:
    return lambda x: layer(x)[0]


def _looped(cell: Any) -> Callable[[Tensor], Tensor]:
    """One cell in the plain time loop, whether it has a kernel or not."""
    return lambda x: unroll(cell, cell.prepare(x), cell.initial_state(x.shape[1])).output
