"""How time grows with size: the exponent that fits best."""

from collections.abc import Callable, Mapping
from functools import partial

import torch

from attractor.bench.timing import TURNS, Work, best_of, threads
from attractor.bench.works import passes
from attractor.cells import GRUCell
from attractor.continual import train
from attractor.continual.strategies.table import STRATEGIES
from attractor.dynamics import fixed_points
from attractor.models import MLP
from attractor.results.speed import Case, Growth, Shape
from attractor.tasks.streams import permuted_images

BASE = Shape(steps=64, batch=8, inputs=8, units=64)
AXES = {"steps": (64, 128, 256), "batch": (8, 32, 128), "units": (64, 128, 256, 512)}
"""What is changed of `BASE`, and to what."""
TASKS = (2, 4, 8)
LEARNING = ("naive", "ewc", "gem")
STARTS = (50, 100, 200, 400)
SEARCHED = "fixed points of a gru"


def of_cell(cell: str, axis: str, seconds: float, turns: int = TURNS) -> Growth:
    """How the training of a cell grows with steps, batch or units, in one thread."""
    shapes = {size: BASE._replace(**{axis: size}) for size in AXES[axis]}
    works = {n: _trained(cell, shape) for n, shape in shapes.items()}
    return _grown(cell, axis, works, seconds, turns)


def of_tasks(strategy: str, seconds: float, turns: int = TURNS) -> Growth:
    """How learning a whole stream grows with its tasks, in one thread."""
    return _grown(strategy, "tasks", {n: _learnt(strategy, n) for n in TASKS}, seconds, turns)


def of_starts(seconds: float, turns: int = TURNS) -> Growth:
    """How the search for fixed points grows with its starts, in one thread."""
    cell = GRUCell(1, 64, generator=torch.Generator().manual_seed(0))
    works = {n: partial(fixed_points, cell, n) for n in STARTS}
    return _grown(SEARCHED, "starts", works, seconds, turns)


def _trained(cell: str, shape: Shape) -> Work:
    return passes(Case(cell, shape, "training", 1))["layer"](shape.steps)


def _learnt(strategy: str, tasks: int) -> Callable[[], object]:
    g = torch.Generator().manual_seed(0)
    stream = permuted_images(dataset="digits", tasks=tasks, generator=g)

    def work() -> object:
        model = MLP([64, 32, 10], generator=torch.Generator().manual_seed(0))
        return train(model, stream, STRATEGIES[strategy](), iterations=20)

    return work


def _grown(what: str, axis: str, by_size: Mapping[int, Work], seconds: float, turns: int) -> Growth:
    with threads(1):
        took = best_of({str(size): work for size, work in by_size.items()}, seconds, turns)
    return Growth(what, axis, tuple(by_size), tuple(took[str(size)] for size in by_size))
