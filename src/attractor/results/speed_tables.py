"""A result as tables of text, for a terminal or a page."""

from attractor.results.speed import Result, Timed
from attractor.results.table import MISSING, Table


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


def _of(result: Result, way: str, threads: int) -> Table:
    some = {
        (one.case.cell, one.case.shape): one
        for one in result.timed
        if (one.case.way, one.case.threads) == (way, threads)
    }
    cells, shapes = dict.fromkeys(cell for cell, _ in some), dict.fromkeys(s for _, s in some)
    rows = [[cell, *(_ratios(some.get((cell, shape))) for shape in shapes)] for cell in cells]
    title = f"{way}, {threads} thread{'s' if threads > 1 else ''}: times as fast as nn.LSTM "
    return Table(f"{title}(nn.GRU, plain loop)", ["cell", *map(str, shapes)], rows)


def _ratios(one: Timed | None) -> str:
    if one is None:
        return MISSING
    eager = MISSING if one.to_eager is None else f"{one.to_eager:.1f}"
    return f"{one.to_lstm:.2f} ({one.to_gru:.2f}, {eager})"


def _growth(result: Result) -> Table:
    by = {(one.what, one.axis): f"{one.exponent:.2f}" for one in result.growth}
    names, axes = (dict.fromkeys(key[index] for key in by) for index in (0, 1))
    rows = [[name, *(by.get((name, axis), MISSING) for axis in axes)] for name in names]
    return Table("growth: time as a power of size", ["what", *axes], rows)
