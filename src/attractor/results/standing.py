"""What optimisers came to beside each other: losses over seeds, times, and performance profiles."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from attractor.errors import InputError
from attractor.estimates import Estimate, estimate
from attractor.files import read_made, write_atomic

FACTORS = (1.0, 1.02, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0)
"""Of the best loss, within which a profile counts."""
TOLERATED = 0.05
"""The share by which a loss may grow before it counts as worse than in an earlier benchmark."""


@dataclass(frozen=True)
class Outcome:
    """An optimiser on a task after so many updates.

    Args:
        task: which.
        horizon: updates.
        contender: the optimiser.
        rate: that was chosen on validation data; None for one that is used as it comes.
        tried: rates among which it was chosen.
        losses: on test data, one for each seed; infinite where the training diverged.
        seconds: of the processor, for each update with its gradient; the least of all seeds.
        updates: that were done: others than the horizon where optimisers had equal time.
    """

    task: str
    horizon: int
    contender: str
    rate: float | None
    tried: tuple[float, ...]
    losses: tuple[float, ...]
    seconds: float
    updates: int | None = None

    @property
    def estimate(self) -> Estimate:
        """The mean loss with its interval."""
        return estimate(self.losses)

    @property
    def at(self) -> tuple[str, int]:
        """Where it was measured."""
        return self.task, self.horizon


@dataclass(frozen=True)
class Standing:
    """A benchmark of optimisers.

    Args:
        machine: where it was made, by what its facts are called.
        quick: whether at the quick budget.
        tasks: by key, what is trained on what.
        seeds: of every outcome.
        outcomes: one for each task, horizon and optimiser.
        left_out: what was not measured, and why.
        by_time: whether optimisers had equal time, and not equally many updates.
    """

    machine: Mapping[str, str]
    quick: bool
    tasks: Mapping[str, str]
    seeds: tuple[int, ...]
    outcomes: tuple[Outcome, ...]
    left_out: tuple[str, ...] = ()
    by_time: bool = False

    @property
    def places(self) -> list[tuple[str, int]]:
        """All tasks with their horizons."""
        return list(dict.fromkeys(one.at for one in self.outcomes))

    @property
    def contenders(self) -> list[str]:
        """All optimisers."""
        return list(dict.fromkeys(one.contender for one in self.outcomes))

    def by(self) -> dict[tuple[str, tuple[str, int]], Outcome]:
        """Outcomes by optimiser and place."""
        return {(one.contender, one.at): one for one in self.outcomes}


def ratios(standing: Standing) -> dict[str, dict[tuple[str, int], float]]:
    """By optimiser and place, the mean loss as a multiple of the least of all optimisers there."""
    least = {
        at: min(one.estimate.mean for one in standing.outcomes if one.at == at)
        for at in standing.places
    }
    found: dict[str, dict[tuple[str, int], float]] = {name: {} for name in standing.contenders}
    for one in standing.outcomes:
        best, mean = least[one.at], one.estimate.mean
        found[one.contender][one.at] = mean / best if 0 < best < math.inf else math.inf
    return found


def profile(standing: Standing, factors: Sequence[float] = FACTORS) -> dict[str, list[float]]:
    """By optimiser, the share of places at which its loss is within each factor of the best.

    A place at which it was left out counts as not reached.

    References:
        Dolan and Moré (2002), Benchmarking optimization software with performance profiles,
        Mathematical Programming 91.
    """
    count = len(standing.places)
    return {
        name: [sum(one <= factor for one in own.values()) / count for factor in factors]
        for name, own in ratios(standing).items()
    }


class Beside(NamedTuple):
    """One optimiser beside another, over the places that both have."""

    lower: int
    """Places at which its mean loss is lower."""
    places: int
    worst: float
    """Its largest loss as a multiple of the other's."""


def beside(standing: Standing, one: str, other: str) -> Beside:
    """How often an optimiser has the lower mean loss, and how much higher it is at its worst."""
    by = standing.by()
    pairs = [
        (by[one, at].estimate.mean, by[other, at].estimate.mean)
        for at in standing.places
        if (one, at) in by and (other, at) in by
    ]
    worst = max((a / b if b < math.inf else 0.0 for a, b in pairs), default=math.nan)
    return Beside(sum(a < b for a, b in pairs), len(pairs), worst)


def times(standing: Standing, unit: str) -> dict[str, float]:
    """By optimiser, the time of an update as a multiple of another's: the geometric mean of places.

    Args:
        standing: the benchmark.
        unit: the optimiser whose time is 1.
    """
    by = standing.by()
    found = {}
    for name in standing.contenders:
        pairs = [(by.get((name, at)), by.get((unit, at))) for at in standing.places]
        logs = [
            math.log(a.seconds / b.seconds) for a, b in pairs if a is not None and b is not None
        ]
        if logs:
            found[name] = math.exp(sum(logs) / len(logs))
    return found


def joined(stored: Standing, found: Standing) -> Standing:
    """A benchmark with what another one found in the place of the same, or after it.

    Args:
        stored: with which `found` goes together: of the same budget, seeds and kind.
        found: whose outcomes count where both have one.
    """
    kinds = [_kind(one) for one in (stored, found)]
    if kinds[0] != kinds[1]:
        told = [
            f"{'quick ' * quick}benchmark of the seeds {', '.join(map(str, seeds))}"
            f"{' in equal time' * by_time}"
            for quick, seeds, by_time in kinds
        ]
        raise InputError(
            f"expected a {told[1]} to join this one with, but got a {told[0]}. Give the same "
            "--quick, --seeds and --by-time."
        )
    return replace(
        stored,
        tasks={**stored.tasks, **found.tasks},
        outcomes=tuple({**stored.by(), **found.by()}.values()),
        left_out=tuple(dict.fromkeys([*stored.left_out, *found.left_out])),
    )


def _kind(one: Standing) -> tuple[bool, tuple[int, ...], bool]:
    """What two benchmarks must share to be compared."""
    return one.quick, one.seeds, one.by_time


def worse(before: Standing, now: Standing) -> list[str]:
    """Optimisers whose loss has grown by more than a twentieth, and beyond both intervals.

    What only one of the two has measured, or on other seeds, is not compared.
    """
    then = before.by()
    said = []
    for one in now.outcomes:
        old = then.get((one.contender, one.at))
        if old is None or _kind(before) != _kind(now):
            continue
        was, found = old.estimate, one.estimate
        apart = (was.half_width or 0.0) + (found.half_width or 0.0)
        if found.mean > max((1 + TOLERATED) * was.mean, was.mean + apart):
            task, updates = one.at
            said.append(
                f"{one.contender}, {task}, {updates:,} updates: loss {found.mean:.4g}, "
                f"{was.mean:.4g} before"
            )
    return said


def save(standing: Standing, path: Path) -> None:
    """Write a benchmark of optimisers as JSON; an infinite loss is null."""
    outcomes = [
        asdict(one) | {"losses": [loss if math.isfinite(loss) else None for loss in one.losses]}
        for one in standing.outcomes
    ]
    whole = asdict(standing) | {"outcomes": outcomes}
    write_atomic(path, json.dumps(whole, indent=1) + "\n")


def load(path: Path) -> Standing:
    """Read a benchmark that `save` wrote."""
    command = "attractor bench optimisers"
    return read_made(path, read, "a benchmark of optimisers", command, "optimisers.json")


def read(whole: Any) -> Standing:
    """A benchmark from what its file holds."""
    return Standing(
        machine={str(key): str(value) for key, value in whole["machine"].items()},
        quick=bool(whole["quick"]),
        tasks={str(key): str(value) for key, value in whole["tasks"].items()},
        seeds=tuple(map(int, whole["seeds"])),
        outcomes=tuple(map(_outcome, whole["outcomes"])),
        left_out=tuple(map(str, whole["left_out"])),
        by_time=bool(whole.get("by_time", False)),  # files of 0.1 have neither this nor updates
    )


def _outcome(row: dict[str, Any]) -> Outcome:
    losses = tuple(math.inf if loss is None else float(loss) for loss in row["losses"])
    if not losses or any(map(math.isnan, losses)):
        raise ValueError(f"{row['losses']!r} are no losses")
    return Outcome(
        task=str(row["task"]),
        horizon=int(row["horizon"]),
        contender=str(row["contender"]),
        rate=None if row["rate"] is None else float(row["rate"]),
        tried=tuple(map(float, row["tried"])),
        losses=losses,
        seconds=float(row["seconds"]),
        updates=None if row.get("updates") is None else int(row["updates"]),
    )
