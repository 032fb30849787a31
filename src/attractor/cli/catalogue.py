"""What ``attractor list`` shows, from the tables."""

import inspect
from typing import Any

from attractor.cells import CELLS
from attractor.experiments.table import EXPERIMENTS, load
from attractor.references import year
from attractor.tasks import TASKS

HIDDEN = 128


def first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").split("\n")[0]


def cells() -> list[dict[str, Any]]:
    """Key, layer, year, parameters and state of each cell, for 128 units and 128 inputs."""
    rows = []
    for key, cell in CELLS.items():
        made: Any = cell
        example = made(HIDDEN, HIDDEN)
        state = example.initial_state(1)
        parts = state._asdict() if hasattr(state, "_asdict") else {cell.state_name: state}
        rows.append(
            {
                "key": key,
                "layer": cell.__name__.removesuffix("Cell"),
                "year": year(cell.reference),
                "parameters": sum(p.numel() for p in example.parameters()),
                "state": " ".join(f"{name}:{_shape(t)}" for name, t in parts.items()),
                "what": first_line(cell),
            }
        )
    return rows


def _shape(tensor: Any) -> str:
    return "x".join(str(size) for size in tensor.shape[1:]) or "1"


def tasks() -> list[dict[str, Any]]:
    """Key and one line for each task."""
    return [{"key": key, "what": first_line(task)} for key, task in TASKS.items()]


def experiments() -> list[dict[str, Any]]:
    """Key, budget, number of runs and title of each experiment."""
    rows = []
    for key in EXPERIMENTS:
        _, config = load(key)
        runs = len(config.runs(key))
        rows.append({"key": key, "budget": config.budget, "runs": runs, "what": config.title})
    return rows
