"""Measures by step: one line for each variant, with intervals over seeds."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attractor.estimates import t_quantile
from attractor.results.variants import variants
from attractor.runs.read import Run

Floats = NDArray[np.float64]


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
