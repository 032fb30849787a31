"""How long an update takes with each optimiser, measured in turns: for trainings of equal time."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from attractor.bench.optimisers.contenders import contender, make, rung
from attractor.bench.optimisers.tasks import problem
from attractor.errors import InputError
from attractor.files import write_atomic
from attractor.optimisers import attach
from attractor.training import Plan, Supervised

UNIT = "adam-cosine"
"""Whose time for a horizon all others get."""
ROUNDS, TURN = 8, 10
"""How often each has its turn, and updates of a turn; the first warms up."""


def paces(task: str, names: Sequence[str], *, quick: bool, folder: Path) -> dict[str, float]:
    """Seconds of the processor for an update with its gradient: the fastest turn of each.

    The optimisers take turns, so that whatever else the machine does is the same for all. What was
    measured is kept in the folder, so that a benchmark that goes on has the same trainings. One
    that has no weights for the task is left out.

    Args:
        task: key of `TASKS`.
        names: contenders.
        quick: the task as in the quick benchmark.
        folder: for what is measured.
    """
    path = folder / "paces" / f"{task}{'-quick' if quick else ''}.json"
    known: dict[str, float] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if {*names} <= known.keys():
        return known
    torch.set_num_threads(1)
    trainings = {}
    for name in names:
        try:
            trainings[name] = _training(task, name, quick)
        except InputError:
            continue  # the benchmark says why
    fastest = dict.fromkeys(trainings, float("inf"))
    for turn in range(ROUNDS):
        for name, training in trainings.items():
            began = time.process_time()
            for _ in range(TURN):
                training.advance()
            if turn:
                fastest[name] = min(fastest[name], (time.process_time() - began) / TURN)
    write_atomic(path, json.dumps(fastest, indent=1) + "\n", lasting=False)
    return fastest


def scaled(horizon: int, own: float, unit: float) -> int:
    """Updates that take as long as so many with an update of the unit's time.

    Example:
        >>> scaled(400, own=0.002, unit=0.001), scaled(1, own=1.0, unit=0.001)
        (200, 1)
    """
    return max(1, round(horizon * unit / own))


def _training(task: str, name: str, quick: bool) -> Supervised:
    whole = problem(task, quick)
    generator = torch.Generator().manual_seed(0)
    network = whole.model(generator)
    rungs = contender(name).rungs
    making = make(name, rung(rungs[0]) if rungs else None, whole.task.shown().x)
    steps = ROUNDS * TURN
    plan = Plan(steps, whole.batch_size, log_every=steps, eval_every=None,
                schedule=contender(name).schedule)  # fmt: skip
    return Supervised(network, whole.task, attach(making, network), plan, generator=generator)
