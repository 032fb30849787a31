"""Grids of settings: every value of each key with every value of the others, from text."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from attractor.errors import InputError, shortened
from attractor.experiments.config import RunConfig
from attractor.experiments.table import load
from attractor.experiments.train import runs_of

LARGEST = 100_000
"""Points of a grid; more are a slip."""


class Axis(NamedTuple):
    """One key and the values that it takes, each as ``--set`` would have it."""

    key: str
    values: tuple[str, ...]


def axes(grids: Iterable[str]) -> list[Axis]:
    """Read ``a.b=1,2,3``, one key after another.

    Commas inside brackets and quotes belong to a value.

    Example:
        >>> axes(["cell=lstm,nru", "model.hidden=[8, 8],[16]"])[1]
        Axis(key='model.hidden', values=('[8, 8]', '[16]'))
    """
    found: list[Axis] = []
    for grid in grids:
        key, _, text = grid.partition("=")
        values = tuple(_split(text))
        if not key.strip() or not all(values):
            raise InputError(
                f"expected a grid as a.b=1,2,3, but got {shortened(grid)}. "
                "Try model.hidden_size=16,32."
            )
        _refuse_twice(f"values of {key.strip()}", values)
        found.append(Axis(key.strip(), values))
    _refuse_twice("grids", [axis.key for axis in found])
    return found


def points(grid: Sequence[Axis]) -> list[list[str]]:
    """Every point of a grid, as changes; one without changes if there is no axis.

    Example:
        >>> points([Axis("a", ("1", "2")), Axis("b", ("3",))])
        [['a=1', 'b=3'], ['a=2', 'b=3']]
    """
    each = [[f"{axis.key}={value}" for value in axis.values] for axis in grid]
    return [list(point) for point in itertools.product(*each)]


def sweep_runs(
    name: str, grid: Sequence[Axis], changes: Sequence[str] = (), only: Iterable[str] = ()
) -> list[RunConfig]:
    """The runs of an experiment at every point of a grid, each once.

    Args:
        name: an experiment of the table, or a TOML file.
        grid: what differs.
        changes: ``a.b=value`` for all of them.
        only: the variants to run, by label; all by default.
    """
    size = 1
    for axis in grid:
        size *= len(axis.values)
    if size > LARGEST:
        raise InputError(
            f"expected a grid of at most {LARGEST:,} points, but got {size:,}. Leave some out."
        )
    found: dict[str, RunConfig] = {}
    for point in points(grid):
        title, experiment = load(name, [*changes, *point])
        for config in runs_of(title, experiment, only):
            found.setdefault(config.id, config)
    return list(found.values())


def _split(text: str) -> Iterator[str]:
    """Cut at the commas that are in no bracket and no quotes."""
    depth, quote, start = 0, "", 0
    for place, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign in "[{":
            depth += 1
        elif sign in "]}":
            depth -= 1
        elif sign == "," and depth == 0:
            yield text[start:place].strip()
            start = place + 1
    yield text[start:].strip()


def _refuse_twice(what: str, names: Sequence[Any]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(
            f"expected the {what} to differ, but got {shortened(twice)} twice. Leave one out."
        )
