"""What all sinks have in common: what they are told, and what they promise."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from attractor.errors import InputError
from attractor.training.process import Row

Setting = str | int | float | bool


class Point(NamedTuple):
    """One number: what it measures (``split/measure``), after which step, and its value."""

    name: str
    step: int
    value: float


class About(NamedTuple):
    """What a sink is told of a run before its points.

    Args:
        group: the experiment.
        name: of the run, once in its group.
        settings: its configuration, by dotted keys.
    """

    group: str
    name: str
    settings: Mapping[str, Setting]

    def place(self, root: Path) -> Path:
        """The run's own folder below that of a sink, whatever its names are."""
        return root / _plain(self.group) / _plain(self.name)


class Writer(Protocol):
    """A run that is open in a sink."""

    def add(self, points: Sequence[Point]) -> None:
        """Take points; they are where the sink keeps them when this returns."""
        ...

    def close(self) -> None:
        """No more will come."""
        ...


class Sink(NamedTuple):
    """A place for the points of runs.

    Args:
        open: makes the writer of a run, from what is told of it, the folder of the sink, and
            whether it begins anew: then nothing of the run that was there before may stay.
        extra: of attractor, which brings the package that it needs; none if it needs none.
        look: the command that shows what is in a folder.
        appends: whether a run that was closed can be opened to go on.
        environment: variables that its package reads as it is imported, where the user set none.
    """

    open: Callable[[About, Path, bool], Writer]
    extra: str | None
    look: str
    appends: bool = True
    environment: Mapping[str, str] = MappingProxyType({})

    def needed(self) -> None:
        """Import its package, and refuse in words if that is not installed."""
        if self.extra is None:
            return
        for name, value in self.environment.items():
            os.environ.setdefault(name, value)
        try:
            import_module(self.extra)
        except ImportError as error:
            raise InputError(
                f"expected the package {self.extra} for tracking with it, but it cannot be "
                f'imported ({error}). Try: pip install "attractor[{self.extra}]"'
            ) from error


def points(row: Row) -> Iterator[Point]:
    """The numbers of a row of a run's log.

    Example:
        >>> list(points({"step": 3, "split": "valid", "loss": 0.5}))
        [Point(name='valid/loss', step=3, value=0.5)]
    """
    for name, value in row.items():
        if name != "step" and isinstance(value, int | float):
            yield Point(f"{row['split']}/{name}", row["step"], float(value))


def by_step(given: Sequence[Point]) -> Iterator[tuple[int, dict[str, float]]]:
    """Points that follow each other with the same step, together.

    Example:
        >>> list(by_step([Point("a", 1, 0.1), Point("b", 1, 0.2), Point("a", 2, 0.3)]))
        [(1, {'a': 0.1, 'b': 0.2}), (2, {'a': 0.3})]
    """
    together: dict[str, float] = {}
    step = 0
    for point in given:
        if together and (point.step != step or point.name in together):
            yield step, together
            together = {}
        step = point.step
        together[point.name] = point.value
    if together:
        yield step, together


def flat(settings: Mapping[str, Any], before: str = "") -> dict[str, Setting]:
    """A nested configuration by dotted keys; lists as JSON.

    Example:
        >>> flat({"model": {"cell": "lstm", "sizes": [3, 4]}, "seed": 0})
        {'model.cell': 'lstm', 'model.sizes': '[3, 4]', 'seed': 0}
    """
    found: dict[str, Setting] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{before}{key}.")
        else:
            plain = isinstance(value, str | int | float)
            found[f"{before}{key}"] = value if plain else json.dumps(value, default=str)
    return found


def _plain(name: str) -> str:
    """A name that is one folder below another, on any system."""
    return re.sub(r"[^\w.-]", "_", name).lstrip(".") or "_"
