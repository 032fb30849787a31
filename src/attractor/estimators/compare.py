"""Which cell to take for somebody's series: all with as many parameters and as much time."""

import math
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import combinations, count
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import KFold, StratifiedKFold
from torch import nn

from attractor.cells import CELLS
from attractor.checks import positive, whole
from attractor.errors import InputError, unknown
from attractor.estimates import Estimate, holm
from attractor.estimators.answers import classes_of, expect_one_each, numbers_of
from attractor.estimators.base import RecurrentEstimator
from attractor.estimators.classifier import RecurrentClassifier
from attractor.estimators.paired import corrected_p, over_folds
from attractor.estimators.regressor import RecurrentRegressor
from attractor.estimators.sequences import Sequences, sequences
from attractor.training import Diverged

TRIED = ("lstm", "gru", "janet", "nru", "decaynet", "fastgrnn")
"""Cells that are tried unless others are named: gated ones of different kinds, all with kernels."""
Series = NDArray[np.float64] | list[NDArray[np.float64]]
"""All in an array, or one by one where they are not equally long."""
MOST = 10_000_000
"""Weights of a network that is tried."""
EPOCHS = 100_000
"""So many that the time decides."""


@dataclass(frozen=True)
class Trial:
    """One cell: its size, its scores fold by fold, and how long each fit took."""

    cell: str
    hidden_size: int
    parameters: int
    scores: tuple[float, ...]
    seconds: tuple[float, ...]
    p: float | None = None
    """How likely its distance to the best is by chance, raised for the number of pairs of cells,
    any of which might have been the two; None for the best itself."""
    failed: str | None = None

    @property
    def estimate(self) -> Estimate:
        """The mean score with its interval over folds."""
        return over_folds(self.scores)

    @property
    def mean_seconds(self) -> float:
        """How long a fit took."""
        return fmean(self.seconds)


@dataclass(frozen=True)
class Comparison:
    """Cells from the best to the worst; those that diverged come last."""

    measure: str
    trials: list[Trial]
    baseline: float = -math.inf
    """The score of who does not look at the series: always the most frequent class, or the mean."""

    @property
    def best(self) -> Trial:
        """The cell to take."""
        return self.trials[0]

    @property
    def advice(self) -> str:
        """Which cell to take, and how sure that is."""
        best = self.best
        found = best.estimate
        told = (
            f"Take {best.cell}: {self.measure} {found.mean:.3f} ± {found.half_width:.3f} over "
            f"{found.n} folds"
        )
        beside = [one for one in self.trials[1:] if one.p is not None and one.p >= 0.05]
        if found.mean - (found.half_width or 0.0) <= self.baseline:
            same = "most frequent class" if self.measure == "accuracy" else "mean"
            return (
                f"{told}. This is not shown to be better than to say the {same} of every series "
                f"({self.baseline:.3f}): allow more time, or give more series."
            )
        if not beside:
            return f"{told}, better than each of the others (p < 0.05)."
        names = _listed([one.cell for one in beside])
        told += f"; {names} cannot be told apart from it (p >= 0.05)"
        quickest = min(beside, key=lambda one: one.mean_seconds)
        ratio = best.mean_seconds / quickest.mean_seconds
        return told + (
            f", and {quickest.cell} took {ratio:.1f} times less time." if ratio > 1.3 else "."
        )


def compare(
    x: Any,
    y: Any,
    *,
    cells: Sequence[str] = TRIED,
    real: bool = False,
    parameters: int = 10_000,
    seconds: float = 10.0,
    folds: int = 5,
    random_state: int = 0,
    on_trial: Callable[[int, int, str], None] = lambda done, total, told: None,
) -> Comparison:
    """Try cells on series by cross-validation, with about equal parameters and equal time.

    Each cell is fitted to a few series before, which does not count: what a process does once, such
    as loading kernels, is charged to none.

    Args:
        x: series, as `RecurrentClassifier` takes them.
        y: their classes, or numbers.
        cells: which to try.
        real: whether y are numbers.
        parameters: weights of a network, as near as its units allow.
        seconds: at most so long for each fit; it ends earlier where validation no longer improves.
        folds: parts, each of which is asked about once.
        random_state: decides the folds, and with the time what is learnt.
        on_trial: told of each fit.

    Example:
        >>> x = np.random.default_rng(0).normal(size=(24, 4)) + np.arange(24)[:, None] % 2 * 3
        >>> found = compare(
        ...     x, np.arange(24) % 2, cells=["rnn", "gru"], parameters=50, seconds=0.2, folds=2
        ... )
        >>> sorted(trial.cell for trial in found.trials), found.measure
        (['gru', 'rnn'], 'accuracy')
    """
    expect_arguments(cells, parameters, seconds, folds, random_state)
    kind: type[RecurrentEstimator] = RecurrentRegressor if real else RecurrentClassifier
    found = sequences(x)
    series, features = _arrays(found), found.x.shape[2]
    answers = (numbers_of if real else classes_of)(y, "compare", f"real={not real}")
    expect_one_each(len(series), len(answers))
    parts = _parts(answers, folds, real, random_state)
    outputs = answers[0].size if real else len(np.unique(answers))

    def network(cell: str, units: int) -> nn.Module:
        return kind(cell, units)._network(features, outputs, 0)

    sizes = {cell: sized(partial(network, cell), parameters) for cell in cells}
    scores: dict[str, list[float]] = {cell: [] for cell in cells}
    spent: dict[str, list[float]] = {cell: [] for cell in cells}
    failed: dict[str, str] = {}
    for cell in cells:
        _warm(kind(cell, sizes[cell][0], epochs=1, learning_rate=None, random_state=0), series)
    done = 0
    for fold, (train, test) in enumerate(parts):  # cells take turns, so that a busy machine is fair
        for cell in cells:
            done += 1
            on_trial(done, folds * len(cells), f"{cell}, fold {fold + 1}")
            if cell in failed:
                continue
            model = kind(
                cell,
                sizes[cell][0],
                epochs=EPOCHS,
                seconds=seconds,
                random_state=random_state + fold,
            )
            started = time.monotonic()
            try:
                model.fit(_some(series, train), answers[train])
            except Diverged as error:
                failed[cell] = error.reason
                continue
            spent[cell].append(time.monotonic() - started)
            scores[cell].append(float(model.score(_some(series, test), answers[test])))
    trials = [
        Trial(cell, *sizes[cell], tuple(scores[cell]), tuple(spent[cell]), failed=failed.get(cell))
        for cell in cells
    ]
    baseline = fmean(_blind(answers[train], answers[test], real) for train, test in parts)
    return Comparison("r2" if real else "accuracy", ranked(trials), baseline)


def expect_arguments(
    cells: Sequence[str], parameters: int, seconds: float, folds: int, random_state: int
) -> None:
    """Refuse arguments of a comparison that are wrong whatever the series are.

    Args:
        cells: which to try.
        parameters: weights of a network.
        seconds: for each fit.
        folds: parts of the cross-validation.
        random_state: decides the folds; the seed of the last fit is larger by their number.
    """
    for cell in cells:
        if cell not in CELLS:
            raise unknown("cell", cell, CELLS)
    if len({*cells}) != len(cells) or len(cells) < 2:
        raise InputError(
            f"expected at least two different cells to compare, but got {', '.join(cells)}. "
            "Try lstm and gru."
        )
    positive("seconds", seconds)
    whole("folds", folds, 2)
    for name, value, least, most in (
        ("parameters", parameters, 1, MOST),
        ("random_state", random_state, 0, 2**32 - folds),
    ):
        if whole(name, value, least) > most:
            raise InputError(
                f"expected {name} to be at most {most}, but got {value}. Try {name}="
                f"{10_000 if name == 'parameters' else 0}."
            )


def ranked(trials: Sequence[Trial]) -> list[Trial]:
    """Trials from the best to the worst, each with how likely its distance to the best is."""
    whole_ones = [one for one in trials if one.failed is None]
    if not whole_ones:
        raise Diverged(
            f"all cells diverged ({trials[0].cell}: {trials[0].failed})",
            "Look at the series for values far from the others.",
        )
    best, *others = sorted(whole_ones, key=lambda one: -fmean(one.scores))
    # all pairs count, those with the best first: which is the best was not known before
    pairs = [(one, best) for one in others] + [*combinations(others, 2)]
    chances = holm([corrected_p(a.scores, b.scores) for a, b in pairs])
    told = [
        Trial(**{**vars(one), "p": chance}) for one, chance in zip(others, chances, strict=False)
    ]
    return [best, *told, *(one for one in trials if one.failed is not None)]


def sized(make: Callable[[int], nn.Module], parameters: int) -> tuple[int, int]:
    """The units with which a network has about so many parameters, and how many it has.

    Args:
        make: from units to the network; units that a cell cannot have raise `InputError`.
        parameters: how many are wanted.

    Example:
        >>> sized(lambda units: nn.Linear(units, 1), 12)
        (11, 12)
    """

    def counted(units: int) -> tuple[int, int]:
        for more in range(8):
            try:
                network = make(units + more)
            except InputError:
                if more == 7:
                    raise
                continue
            return units + more, sum(p.numel() for p in network.parameters())
        raise AssertionError("the last attempt returns or raises")

    low, high = counted(1), counted(2)
    while high[1] < parameters:
        low, high = high, counted(2 * high[0])
    while high[0] - low[0] > 1:
        try:
            middle = counted((low[0] + high[0]) // 2)
        except InputError:  # none between powers of two
            break
        if middle[0] >= high[0]:
            break
        low, high = (middle, high) if middle[1] < parameters else (low, middle)
    return min(low, high, key=lambda one: abs(one[1] - parameters))


def _warm(model: RecurrentEstimator, series: Series) -> None:
    """Do what a process does once for a cell, before the clocks start: a short fit, to no end."""
    few = np.arange(8)
    with suppress(Diverged):
        model.fit(_some(series, few), few % 2)


def _parts(y: NDArray[Any], folds: int, real: bool, seed: int) -> list[tuple[Any, Any]]:
    """For each fold the places to learn from and to be asked about."""
    if len(y) < 4 * folds:
        raise InputError(
            f"expected at least {4 * folds} series for {folds} folds, but got {len(y)}. Try fewer "
            "folds, or more series."
        )
    if not real:
        _expect_classes(y, folds)
    splitter = (KFold if real else StratifiedKFold)(folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # a class with fewer series than folds is in some of them, which is as it can be
        warnings.simplefilter("ignore", UserWarning)
        return list(splitter.split(np.zeros(len(y)), y))


def _blind(seen: NDArray[Any], asked: NDArray[Any], real: bool) -> float:
    """The score of who only knows the answers that were seen."""
    dummy = (DummyRegressor() if real else DummyClassifier()).fit(np.zeros(len(seen)), seen)
    return float(dummy.score(np.zeros(len(asked)), asked))


def _expect_classes(y: NDArray[Any], folds: int) -> None:
    """Refuse classes that some folds could not be learnt from the others."""
    names, counts = np.unique(y, return_counts=True)
    name, most = names[counts.argmax()], int(counts.max())
    # of the largest, three are left to learn from beside any fold, of which one is held back
    least = next(n for n in count(folds) if n - math.ceil(n / folds) >= 3)
    if most < least:
        many = 2 * len(names) > len(y)
        hint = "Try real=True if they are numbers." if many else "Give more series of a class."
        raise InputError(
            f"expected a class of at least {least} series for {folds} folds, but the largest of "
            f"{len(names)}, the class {name}, has {most}. {hint}"
        )
    if (counts >= 2).sum() < 2:
        raise InputError(
            "expected at least two classes of at least two series each, but got "
            f"{most} of {name} and {len(y) - most} of others. Give more series of another class."
        )


def _arrays(found: Sequences) -> Series:
    """Series as they can be chosen among by their places, without what pads them."""
    x = found.x.numpy()
    if found.lengths is None:
        return x
    return [one[:length] for one, length in zip(x, found.lengths.tolist(), strict=True)]


def _some(series: Series, places: NDArray[np.intp]) -> Series:
    return [series[i] for i in places] if isinstance(series, list) else series[places]


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
