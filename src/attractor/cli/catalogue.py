"""What ``attractor list`` shows, from the tables; each is imported when it is asked for."""

import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from attractor.references import year

TABLES = {
    "cells": "attractor.cells:CELLS",
    "models": "attractor.models:MODELS",
    "optimisers": "attractor.optimisers:OPTIMISERS",
    "strategies": "attractor.continual:STRATEGIES",
    "streams": "attractor.tasks.streams:STREAMS",
    "tasks": "attractor.tasks:TASKS",
    "experiments": "attractor.experiments.files:EXPERIMENTS",
}

HIDDEN = 128
LEARNER = 25_450


def table_of(kind: str) -> Mapping[str, Any]:
    """The table of a kind; of all but experiments, torch is imported with it."""
    module, _, name = TABLES[kind].partition(":")
    found: Mapping[str, Any] = getattr(import_module(module), name)
    return found


def first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").split("\n")[0]


def cells() -> list[dict[str, Any]]:
    """Key, layer, year, parameters and state of each cell, for 128 units and 128 inputs."""
    rows = []
    for key, cell in table_of("cells").items():
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


def models() -> list[dict[str, Any]]:
    """Key, what it reads, year and one line for each network."""
    return [
        {
            "key": key,
            "reads": model.reads,
            "year": year(model.reference),
            "what": first_line(model.kind),
        }
        for key, model in table_of("models").items()
    ]


def optimisers() -> list[dict[str, Any]]:
    """Key, class, year and weights of each optimiser, and the networks that it goes on."""
    from attractor.optimisers.rule import needs_size

    rows = []
    for key, entry in table_of("optimisers").items():
        sized = entry.learned and needs_size(entry.kind)
        example: Any = entry(**({"size": LEARNER} if sized else {})) if entry.learned else None
        rows.append(
            {
                "key": key,
                "class": entry.kind.__name__,
                "year": year(entry.reference),
                "weights": sum(p.numel() for p in example.parameters()) if entry.learned else 0,
                "goes on": "one size" if sized else "any network",
                "what": first_line(entry.kind),
            }
        )
    return rows


def strategies() -> list[dict[str, Any]]:
    """Key, class, year and options of each strategy of continual learning."""
    rows = []
    for key, strategy in table_of("strategies").items():
        made: Any = strategy
        rows.append(
            {
                "key": key,
                "class": made.__name__,
                "year": year(made.reference),
                "options": " ".join(inspect.signature(made).parameters),
                "what": first_line(made),
            }
        )
    return rows


def streams() -> list[dict[str, Any]]:
    """Key and one line for each stream of tasks."""
    return [{"key": key, "what": first_line(make)} for key, make in table_of("streams").items()]


def tasks() -> list[dict[str, Any]]:
    """Key and one line for each task."""
    return [{"key": key, "what": first_line(task)} for key, task in table_of("tasks").items()]


def experiments() -> list[dict[str, Any]]:
    """Key, budget, number of runs and title of each experiment."""
    from attractor.experiments.files import EXPERIMENTS, with_bases

    rows = []
    for key, path in EXPERIMENTS.items():
        found = with_bases(path)  # which tests hold to be valid: a list need not check them again
        runs = len(found["seeds"]) * len(found["variant"])
        rows.append({"key": key, "budget": found["budget"], "runs": runs, "what": found["title"]})
    return rows
