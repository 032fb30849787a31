"""What is measured of cells: beside torch's own layers, the loop without kernels, and peers."""

from collections.abc import Callable, Sequence

from attractor.bench.room import cost
from attractor.bench.timing import TURNS, Work, best_of, threads
from attractor.bench.works import passes, peers
from attractor.cells import CELLS
from attractor.errors import InputError, unknown
from attractor.results.speed import WAYS, Case, Shape, Timed

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


def measure(case: Case, seconds: float, turns: int = TURNS) -> Timed:
    """Measure one case: its layer in turns with those that it is compared with.

    ``nn.LSTM`` is done as often as the layer; ``nn.GRU`` and the plain loop, which is slow, at
    least once. A loop that would take too long or too much memory is done for its first steps
    alone, and its time is that of a step times their number.
    """
    steps = case.shape.steps
    with threads(case.threads):
        found = _found(case)
        if not cost(found["layer"], steps).has_room(steps):
            raise InputError(
                f"{case}: left out, for it would take more than half of the free memory."
            )
        done = {name: passing(steps) for name, passing in found.items()}
        looped = steps
        if "eager" in found:
            looped = cost(found["eager"], steps).affordable(steps)
            done["eager"] = found["eager"](looped)
        took = best_of(done, seconds, turns, [name for name in ("gru", "eager") if name in done])
    eager = took["eager"] * steps / looped if "eager" in took else None
    return Timed(case, took["layer"], eager, took["lstm"], took["gru"])


def _found(case: Case) -> dict[str, Callable[[int], Work]]:
    """The passes of a case; a layer of a peer's that breaks is no fault of ours."""
    if case.cell in CELLS:
        return passes(case)
    try:
        found = passes(case)
        found["layer"](1)()
    except Exception as error:
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InputError(f"{case}: left out, for it breaks here ({what}).") from error
    return found
