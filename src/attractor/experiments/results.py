"""Saved runs, read back: one curve per variant and one table, with intervals over seeds.

A variant is the set of runs that differ by their seed alone. Runs of other experiments, budgets
or settings are never averaged together, even if they carry the same label.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attractor.errors import InputError
from attractor.estimates import Estimate, estimate, t_quantile
from attractor.experiments.changes import flat
from attractor.experiments.saved import Run, is_finite

Floats = NDArray[np.float64]

# What names a run; all the rest of its configuration are settings.
_NAMES = {"experiment", "title", "description", "budget", "label", "seed"}
_GROWS = ("accuracy", "reward", "score", "transfer", "solved", "sparsity")
_ASIDE = ("sparsity",)
"""Worth telling, but no measure of how well a network does: it never ranks."""


@dataclass(frozen=True)
class Variant:
    """The runs that differ by their seed alone. Labels are unique in an experiment and budget."""

    experiment: str
    budget: str
    label: str
    runs: tuple[Run, ...]


@dataclass(frozen=True, eq=False)
class Line:
    """One variant's measure by step; ``low`` and ``high`` are NaN where ``n`` is one."""

    label: str
    steps: NDArray[np.int64]
    mean: Floats
    low: Floats
    high: Floats
    n: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Curve:
    """One measure of every variant that has it."""

    split: str
    metric: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class SummaryRow:
    """One variant's line in the table of results.

    ``estimates`` holds every test measure over the ``n`` seeds that are done, ``metric`` names
    the one that ranks, and ``rank`` is ``None`` for a variant without it. ``seconds`` is the
    median over the seeds that are done.
    """

    experiment: str
    budget: str
    label: str
    metric: str
    rank: int | None
    n: int
    failed: int
    unfinished: int
    parameters: int | None
    seconds: float | None
    estimates: dict[str, Estimate]

    @property
    def estimate(self) -> Estimate | None:
        return self.estimates.get(self.metric)

    @property
    def status(self) -> str:
        """In words: ``done``, or such as ``2 done, 1 failed``."""
        counts = {"done": self.n, "failed": self.failed, "unfinished": self.unfinished}
        some = {name: count for name, count in counts.items() if count}
        if len(some) == 1:
            return next(iter(some))
        return ", ".join(f"{count} {name}" for name, count in some.items())


def variants(runs: Iterable[Run]) -> list[Variant]:
    """Group runs that differ by their seed alone.

    Where one label covers several settings, what differs is added to it, so that
    ``LSTM`` becomes ``LSTM (train.lr=0.01)`` and ``LSTM (train.lr=0.001)``.
    """
    named: dict[tuple[str, str, str], dict[str, list[Run]]] = {}
    for run in runs:
        same_name = named.setdefault((run.experiment, run.budget, run.label), {})
        same_name.setdefault(_exactly(settings(run)), []).append(run)
    result = []
    for (experiment, budget, label), groups in named.items():
        each = [settings(group[0]) for group in groups.values()]
        keys = differing(each)
        for group, values in zip(groups.values(), each, strict=True):
            _check_seeds(label, group)
            what = ", ".join(f"{key}={values.get(key, 'none')}" for key in keys)
            name = f"{label} ({what})" if what else label
            result.append(Variant(experiment, budget, name, tuple(group)))
    return result


def settings(run: Run) -> dict[str, Any]:
    """Everything in the configuration but the run's names and seed, under dotted keys."""
    return flat({key: value for key, value in run.config.items() if key not in _NAMES})


def differing(tables: Sequence[Mapping[str, Any]]) -> list[str]:
    """The keys whose values are not the same in all tables, in order of appearance."""
    keys = dict.fromkeys(key for table in tables for key in table)
    return [key for key in keys if len({_exactly(table.get(key)) for table in tables}) > 1]


def higher_is_better(metric: str) -> bool:
    """Whether more of a measure is better; losses, errors and all unknown ones should shrink."""
    return any(word in metric for word in _GROWS)


def main_metric(runs: Iterable[Run]) -> str:
    """The measure that ranks: steps to solve, then one that should grow, and the loss last."""
    names = {"loss"}
    for run in runs:
        names.update(run.test)
        held_out = (row for row in run.rows if row["split"] in ("valid", "test"))
        names.update(name for row in held_out for name, value in row.items() if is_finite(value))
    names.discard("step")
    return min(
        names,
        key=lambda m: (
            m in _ASIDE,
            m != "steps_to_solve",
            m != "accuracy",
            not higher_is_better(m),
            m == "loss",
            m,
        ),
    )


def curve(runs: Iterable[Run], split: str, metric: str, *, log: bool = False) -> Curve:
    """One measure by step, averaged over the seeds of each variant.

    Failed runs are left out of the mean. Unfinished ones count as far as they came, so ``n`` may
    fall along a line.

    Args:
        runs: of any number of variants.
        split: ``train``, ``valid`` or ``test``.
        metric: the name of the measure.
        log: average the logarithms instead: the geometric mean and its interval, which for a
            positive measure is positive too. For log axes; values must be positive.
    """
    lines = []
    for variant in variants(runs):
        series = [run.series(split, metric) for run in variant.runs if run.status != "failed"]
        steps = np.array(sorted({step for values in series for step in values}), dtype=np.int64)
        if not len(steps):
            continue
        table = np.full((len(series), len(steps)), np.nan)
        for row, values in zip(table, series, strict=True):
            row[np.searchsorted(steps, list(values))] = list(values.values())
        lines.append(_line(variant.label, steps, table, log))
    return Curve(split, metric, tuple(lines))


def summary(runs: Iterable[Run]) -> list[SummaryRow]:
    """One row per variant, the best first within its experiment and budget."""
    chapters: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        chapters.setdefault((run.experiment, run.budget), []).append(run)
    return [row for chapter in chapters.values() for row in _ranked(chapter)]


def _ranked(runs: list[Run]) -> list[SummaryRow]:
    metric = main_metric(runs)
    sign = -1 if higher_is_better(metric) else 1
    means: dict[str, float] = {}
    for variant in variants(runs):
        if values := [run.test[metric] for run in variant.runs if metric in run.test]:
            means[variant.label] = sign * fmean(values)
    # Equal means share a rank; a variant without a number comes last and has none.
    order = sorted(variants(runs), key=lambda v: means.get(v.label, math.inf))
    ranks = {name: 1 + sum(m < mean for m in means.values()) for name, mean in means.items()}
    return [_summary_row(v, metric, ranks.get(v.label)) for v in order]


def _summary_row(variant: Variant, metric: str, rank: int | None) -> SummaryRow:
    done = [run for run in variant.runs if run.status == "done"]
    names = dict.fromkeys(name for run in done for name in run.test)
    seconds = [run.outcome["seconds"] for run in done if is_finite(run.outcome.get("seconds"))]
    sizes = [size for run in done if isinstance(size := run.outcome.get("parameters"), int)]
    return SummaryRow(
        experiment=variant.experiment,
        budget=variant.budget,
        label=variant.label,
        metric=metric,
        rank=rank,
        n=len(done),
        failed=sum(run.status == "failed" for run in variant.runs),
        unfinished=sum(run.status == "unfinished" for run in variant.runs),
        parameters=sizes[0] if sizes else None,
        seconds=median(seconds) if seconds else None,
        estimates={
            name: estimate([run.test[name] for run in done if name in run.test]) for name in names
        },
    )


def _line(label: str, steps: NDArray[np.int64], table: Floats, log: bool) -> Line:
    if log:
        table = np.log(table)
    n = np.isfinite(table).sum(axis=0)
    mean = np.nansum(table, axis=0) / n
    squares = np.nansum((table - mean) ** 2, axis=0)
    several = n > 1
    half = np.full(len(steps), np.nan)
    count = n[several]
    half[several] = t_quantile(count) * np.sqrt(squares[several] / (count - 1) / count)
    low, high = mean - half, mean + half
    if log:
        mean, low, high = np.exp(mean), np.exp(low), np.exp(high)
    return Line(label, steps, mean, low, high, n)


def _check_seeds(label: str, runs: Sequence[Run]) -> None:
    seen: dict[int, Run] = {}
    for run in runs:
        # A copy counted as another seed would make the interval too narrow.
        if other := seen.get(run.seed):
            raise InputError(
                f"expected one run of {label!r} per seed, but got two for seed {run.seed}: "
                f"{other.folder} and {run.folder}. Try leaving one of these folders out."
            )
        seen[run.seed] = run


def _exactly(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)
