"""What a benchmark of speed found: kept in a file, read back, and compared with an earlier one."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from attractor.errors import InputError
from attractor.files import read_made, write_atomic

Way = Literal["forward", "training"]
WAYS: tuple[Way, ...] = ("forward", "training")
TOLERATED = 0.1
"""The share of its speed that a layer may lose before it counts as slower."""


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

    def best(self, other: "Timed") -> "Timed":
        """The better of each time of two measurements of the same case."""
        eager = None if self.eager is None or other.eager is None else min(self.eager, other.eager)
        return Timed(
            self.case,
            min(self.seconds, other.seconds),
            eager,
            min(self.lstm, other.lstm),
            min(self.gru, other.gru),
        )

    def __str__(self) -> str:
        return str(self.case)


@dataclass(frozen=True)
class Growth:
    """Times of one thing at several sizes.

    Args:
        what: a cell, a strategy or a search.
        axis: what grows: ``steps``, ``batch``, ``units``, ``tasks`` or ``starts``.
        sizes: of it.
        seconds: at each of them.
    """

    what: str
    axis: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """The k of the power of the size that fits the times best."""
        return exponent(self.sizes, self.seconds)

    def __str__(self) -> str:
        return f"{self.what} against {self.axis}"


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    r"""The k of :math:`a n^k` that fits best, by least squares of logarithms.

    Example:
        >>> round(exponent([1, 2, 4], [3.0, 12.0, 48.0]), 6)
        2.0
    """
    xs, ys = ([math.log(value) for value in values] for values in (sizes, seconds))
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    upper = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True))
    return upper / sum((a - x) ** 2 for a in xs)


Found = Timed | Growth


@dataclass(frozen=True)
class Result:
    """A benchmark: where it was made, and what it found.

    Args:
        machine: processor, versions, allocator, load and matmul peak, by what they are called.
        timed: one for each cell, shape, way and number of threads.
        growth: how times grow.
        left_out: what the machine could not do, and why.
    """

    machine: dict[str, str]
    timed: tuple[Timed, ...]
    growth: tuple[Growth, ...]
    left_out: tuple[str, ...] = ()


class Loss(NamedTuple):
    """A layer that has become slower: its speed as a multiple of ``nn.LSTM``'s, then and now."""

    case: Case
    before: float
    now: float

    def __str__(self) -> str:
        return f"{self.case}: {self.now:.2f} times nn.LSTM, {self.before:.2f} before"


def losses(before: Result, now: Result) -> list[Loss]:
    """The layers that are more than a tenth slower beside ``nn.LSTM`` than they were.

    What only one of the two has measured is not compared.
    """
    then = {one.case: one.to_lstm for one in before.timed}
    return [
        Loss(one.case, then[one.case], one.to_lstm)
        for one in now.timed
        if one.case in then and one.to_lstm < (1 - TOLERATED) * then[one.case]
    ]


def save(result: Result, path: Path) -> None:
    """Write a result as JSON, with the ratios beside the times."""
    whole = {
        "machine": result.machine,
        "timed": list(map(row, result.timed)),
        "growth": list(map(row, result.growth)),
        "left_out": list(result.left_out),
    }
    write_atomic(path, json.dumps(whole, indent=1) + "\n")


def load(path: Path) -> Result:
    """Read a result that `save` wrote."""
    return read_made(path, read, "a benchmark's file", "attractor bench --out")


def row(found: Found) -> dict[str, Any]:
    """What was measured of one thing as it stands in a file."""
    if isinstance(found, Growth):
        return asdict(found) | {"exponent": found.exponent}
    times = {name: getattr(found, name) for name in ("seconds", "eager", "lstm", "gru")}
    ratios = {name: getattr(found, name) for name in ("to_lstm", "to_gru", "to_eager")}
    return found.case._asdict() | {"shape": list(found.case.shape)} | times | ratios


def found_in(row: dict[str, Any]) -> Found:
    """What `row` made a row of."""
    return _growth(row) if "axis" in row else _timed(row)


def read(whole: Any) -> Result:
    """A benchmark from what its file holds."""
    return Result(
        machine={str(key): str(value) for key, value in whole["machine"].items()},
        timed=tuple(map(_timed, whole["timed"])),
        growth=tuple(map(_growth, whole["growth"])),
        left_out=tuple(map(str, whole["left_out"])),
    )


def _timed(row: dict[str, Any]) -> Timed:
    if row["way"] not in WAYS:
        raise ValueError(f"no way {row['way']!r}")
    case = Case(str(row["cell"]), Shape(*map(int, row["shape"])), row["way"], int(row["threads"]))
    eager = None if row["eager"] is None else _positive(row["eager"])
    seconds, lstm, gru = (_positive(row[name]) for name in ("seconds", "lstm", "gru"))
    return Timed(case, seconds, eager, lstm, gru)


def _growth(row: dict[str, Any]) -> Growth:
    sizes, seconds = tuple(map(int, row["sizes"])), tuple(map(_positive, row["seconds"]))
    return Growth(str(row["what"]), str(row["axis"]), sizes, seconds)


def _positive(value: Any) -> float:
    if not float(value) > 0:
        raise ValueError(f"{value!r} is no time")
    return float(value)
