"""What a search may choose from: lists of values, and ranges."""

import itertools
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from attractor.errors import InputError, shortened
from attractor.experiments.grid import Axis, axes

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
RANGE = re.compile(rf"({NUMBER})(?<!\.)\.\.(?!\.)({NUMBER})(:log)?", re.IGNORECASE)
ALMOST = re.compile(rf"{NUMBER}\.\..*", re.IGNORECASE)
"""What begins as a range does."""


class Range(NamedTuple):
    """From `low` to `high`; evenly in the logarithm if `log`; whole numbers if both are."""

    low: float
    high: float
    log: bool

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)


MOST = 10_000
"""Points of a space that are told apart one by one; larger ones hardly have one twice."""


class Space(NamedTuple):
    """By key, the values or the range that a search may choose from."""

    choices: dict[str, tuple[str, ...] | Range]

    @classmethod
    def read(cls, grids: Iterable[str]) -> "Space":
        """Read ``a.b=1,2,3``, ``a.b=1..64`` and ``a.b=1e-4..1e-1:log``.

        Example:
            >>> Space.read(["optimiser.lr=1e-4..0.1:log", "cell=lstm,nru"]).keys
            ('optimiser.lr', 'cell')
        """
        found = {axis.key: _choice(axis) for axis in axes(grids)}
        if not found:
            raise InputError(
                "expected at least one --grid to search in, but got none. "
                "Try --grid optimiser.lr=1e-4..1e-1:log."
            )
        return cls(found)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.choices)

    @property
    def size(self) -> int:
        """How many points there are; as many as a machine can count if a range has no end of them.

        Example:
            >>> Space.read(["a=1..8", "b=x,y"]).size
            16
        """
        sizes = [
            len(one) if not isinstance(one, Range) else int(one.high - one.low) + 1
            for one in self.choices.values()
            if not isinstance(one, Range) or one.whole
        ]
        return math.prod(sizes) if len(sizes) == len(self.choices) else sys.maxsize

    def without(self, tried: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The points that were not tried, where there are few enough to look at each.

        Example:
            >>> Space.read(["a=1..2", "b=x"]).without([{"a": 1, "b": "x"}])
            [{'a': 2, 'b': 'x'}]
        """
        if self.size > MOST:
            return []
        values = [
            range(int(one.low), int(one.high) + 1) if isinstance(one, Range) else one
            for one in self.choices.values()
        ]
        known = {tuple(one[key] for key in self.keys) for one in tried}
        points = (one for one in itertools.product(*values) if one not in known)
        return [dict(zip(self.keys, one, strict=True)) for one in points]

    @property
    def first(self) -> list[str]:
        """Some point, as changes."""
        return self.edges[0]

    @property
    def edges(self) -> list[list[str]]:
        """Points, as changes, that have each value and each end of a range at least once.

        Example:
            >>> Space.read(["a=1..8", "b=x,y"]).edges
            [['a=1', 'b=x'], ['a=8', 'b=x'], ['a=1', 'b=y']]
        """
        ends = {
            key: one[:2] if isinstance(one, Range) else one for key, one in self.choices.items()
        }
        first = {key: values[0] for key, values in ends.items()}
        others = [{**first, key: one} for key, values in ends.items() for one in values[1:]]
        return [self.changes(point) for point in (first, *others)]

    def distributions(self, optuna: Any) -> dict[str, Any]:
        """The space as Optuna has it."""
        found: dict[str, Any] = {}
        for key, one in self.choices.items():
            if not isinstance(one, Range):
                found[key] = optuna.distributions.CategoricalDistribution(one)
            elif one.whole:
                low, high = int(one.low), int(one.high)
                found[key] = optuna.distributions.IntDistribution(low, high, log=one.log)
            else:
                found[key] = optuna.distributions.FloatDistribution(one.low, one.high, log=one.log)
        return found

    def changes(self, params: Mapping[str, Any]) -> list[str]:
        """A point as changes of a configuration."""
        values = zip(self.keys, self.written(params), strict=True)
        return [f"{key}={value}" for key, value in values]

    def written(self, params: Mapping[str, Any]) -> Iterator[str]:
        """The values of a point, in the order of the keys; five digits of a rate are enough."""
        for key in self.keys:
            value = params[key]
            yield f"{value:.5g}" if isinstance(value, float) else str(value)


def listed(grids: Iterable[str]) -> list[Axis]:
    """The axes of a grid of which every point is run: lists of values, no ranges.

    Example:
        >>> listed(["optimiser.lr=0.1,0.01"])
        [Axis(key='optimiser.lr', values=('0.1', '0.01'))]
    """
    found = axes(grids)
    for axis in found:
        if any(map(RANGE.fullmatch, axis.values)):
            raise InputError(
                f"expected a list of values for {axis.key}, but got "
                f"{shortened(','.join(axis.values))}: a range is for a search. "
                "Try --trials 20, or write the values."
            )
    return found


def _choice(axis: Axis) -> tuple[str, ...] | Range:
    match = RANGE.fullmatch(axis.values[0]) if len(axis.values) == 1 else None
    if match is None:
        _refuse_almost(axis)
        return axis.values
    low, high = (
        int(one) if re.fullmatch(r"[-+]?\d+", one) else float(one) for one in match.groups()[:2]
    )
    if not low < high or (match[3] and low <= 0):
        raise InputError(
            f"expected a range from a smaller to a larger number"
            f"{', both above zero,' if match[3] else ''} for {axis.key}, but got "
            f"{shortened(axis.values[0])}. Try 1e-4..1e-1:log."
        )
    return Range(low, high, bool(match[3]))


def _refuse_almost(axis: Axis) -> None:
    """Say of a value that begins as a range does, but is none, how to write one."""
    for value in axis.values:
        if ALMOST.fullmatch(value):
            raise InputError(
                f"expected one range or a list of values for {axis.key}, but got "
                f"{shortened(','.join(axis.values))}. Try 1e-4..1e-1:log, or write the values."
            )
