"""A benchmark of speed as tables of text, for a terminal or a page."""

from collections.abc import Callable, Iterable

from attractor.results.speed import Result, Timed, Way
from attractor.results.table import MISSING, Table

RIVALS = {"lstm": "nn.LSTM", "gru": "nn.GRU", "eager": "the plain loop"}
"""What a layer is compared with, by the name of its time."""


def tables(result: Result) -> list[Table]:
    """Where it ran, one table for each way and number of threads, and how times grow.

    A cell of the middle ones reads ``1.21 (1.05, 4.3)``: so many times as fast as ``nn.LSTM``, as
    ``nn.GRU`` and as the plain loop.
    """
    kinds = dict.fromkeys((one.case.way, one.case.threads) for one in result.timed)
    return [
        Table("machine", ["what", "found"], [list(pair) for pair in result.machine.items()]),
        *(_of(result, way, threads) for way, threads in kinds),
        *([_growth(result)] if result.growth else []),
    ]


def markdown(result: Result) -> str:
    """All tables for a page of documentation."""
    parts = [one.markdown() for one in tables(result)]
    return "\n\n".join([*parts, *result.left_out]) + "\n"


def beside(result: Result, way: Way, threads: int, rival: str = "lstm") -> Table:
    """How many times as fast as one of `RIVALS` each layer is at each shape."""
    title = f"{way}, {_threads(threads)}: times as fast as {RIVALS[rival]}"
    digits = 1 if rival == "eager" else 2

    def said(one: Timed) -> str:
        ratio = getattr(one, f"to_{rival}")
        return MISSING if ratio is None else f"{ratio:.{digits}f}"

    return _by_shape(title, _some(result, way, threads), said)


def _of(result: Result, way: Way, threads: int) -> Table:
    title = f"{way}, {_threads(threads)}: times as fast as nn.LSTM (nn.GRU, plain loop)"
    return _by_shape(title, _some(result, way, threads), _ratios)


def _threads(number: int) -> str:
    return f"{number} thread{'s' if number > 1 else ''}"


def _some(result: Result, way: Way, threads: int) -> list[Timed]:
    return [one for one in result.timed if (one.case.way, one.case.threads) == (way, threads)]


def _by_shape(title: str, timed: Iterable[Timed], said: Callable[[Timed], str]) -> Table:
    some = {(one.case.cell, one.case.shape): said(one) for one in timed}
    cells, shapes = dict.fromkeys(cell for cell, _ in some), dict.fromkeys(s for _, s in some)
    rows = [[cell, *(some.get((cell, shape), MISSING) for shape in shapes)] for cell in cells]
    return Table(title, ["cell", *map(str, shapes)], rows)


def _ratios(one: Timed) -> str:
    eager = MISSING if one.to_eager is None else f"{one.to_eager:.1f}"
    return f"{one.to_lstm:.2f} ({one.to_gru:.2f}, {eager})"


def _growth(result: Result) -> Table:
    by = {(one.what, one.axis): f"{one.exponent:.2f}" for one in result.growth}
    names, axes = (dict.fromkeys(key[index] for key in by) for index in (0, 1))
    rows = [[name, *(by.get((name, axis), MISSING) for axis in axes)] for name in names]
    return Table("growth: time as a power of size", ["what", *axes], rows)
