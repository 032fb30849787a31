"""What a benchmark found: kept in a file, read back, and compared with an earlier one."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from attractor.bench.cells import Case, Shape, Timed
from attractor.bench.growth import Growth
from attractor.files import read_made, write_atomic

TOLERATED = 0.1
"""The share of its speed that a layer may lose before it counts as slower."""


@dataclass(frozen=True)
class Result:
    """A benchmark: where it was made, and what it found.

    Args:
        machine: processor, versions, allocator and matmul peak, by what they are called.
        timed: one for each cell, shape, way and number of threads.
        growth: how times grow.
        left_out: cases for which the machine has too little memory.
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
    timed = [
        {
            **one.case._asdict(),
            "shape": list(one.case.shape),
            "seconds": one.seconds,
            "eager": one.eager,
            "lstm": one.lstm,
            "gru": one.gru,
            "to_lstm": one.to_lstm,
            "to_gru": one.to_gru,
            "to_eager": one.to_eager,
        }
        for one in result.timed
    ]
    growth = [asdict(one) | {"exponent": one.exponent} for one in result.growth]
    whole = {
        "machine": result.machine,
        "timed": timed,
        "growth": growth,
        "left_out": list(result.left_out),
    }
    write_atomic(path, json.dumps(whole, indent=1) + "\n")


def load(path: Path) -> Result:
    """Read a result that `save` wrote."""
    return read_made(path, _read, "a benchmark's file", "attractor bench --out")


def _read(whole: Any) -> Result:
    return Result(
        machine={str(key): str(value) for key, value in whole["machine"].items()},
        timed=tuple(map(_timed, whole["timed"])),
        growth=tuple(map(_growth, whole["growth"])),
        left_out=tuple(map(str, whole["left_out"])),
    )


def _timed(row: dict[str, Any]) -> Timed:
    if row["way"] not in ("forward", "training"):
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
