"""Who gets there, and when: survival curves of runs that stop once a task is solved."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attractor.errors import InputError
from attractor.results.variants import variants
from attractor.runs.read import Run

HIGH = 2.0
"""A loss of more than this many times the first one is one of a run that exploded."""

STILL = 0.8
"""The share of late losses that are at one place in a run that stands still."""

Fate = Literal["solved", "exploded", "stands still", "on its way"]


@dataclass(frozen=True, eq=False)
class Survival:
    """How many runs of a variant have not solved a task by each step.

    ``at`` are the updates after which each run solved it, of those that did, and ``given`` those
    that each of the others had. ``share`` holds from each of ``steps`` until the next.
    """

    label: str
    at: tuple[int, ...]
    given: tuple[int, ...]
    steps: NDArray[np.int64]
    share: NDArray[np.float64]

    @property
    def n(self) -> int:
        return len(self.at) + len(self.given)

    @property
    def median(self) -> int | None:
        """The first step by which half of the runs had solved it; ``None`` if fewer did."""
        below = self.steps[self.share <= 0.5]
        return int(below[0]) if len(below) else None


def survival(runs: Iterable[Run]) -> list[Survival]:
    r"""The survival curve of each variant, by Kaplan and Meier.

    .. math::
        S(t) = \prod_{t_i \le t} \Big(1 - \frac{d_i}{n_i}\Big)

    where :math:`d_i` of the :math:`n_i` runs that were still at it solved the task at step
    :math:`t_i`. A run that ended without having solved it counts for as long as it was given; so
    does one that exploded, because no more updates would have helped it. Unfinished runs are left
    out.

    Args:
        runs: of experiments with ``train.stop_below``.

    References:
        Kaplan and Meier (1958), Nonparametric estimation from incomplete observations.
    """
    found = []
    for variant in variants(runs):
        ended = [run for run in variant.runs if run.status != "unfinished"]
        solved = [run for run in ended if run.test.get("solved") == 1.0]
        at = sorted(int(run.test["steps_to_solve"]) for run in solved)
        given = sorted(_given(run) for run in ended if run not in solved)
        if ended:
            found.append(kaplan_meier(at, given, label=variant.label))
    return found


def kaplan_meier(at: Sequence[int], given: Sequence[int], *, label: str = "") -> Survival:
    """The survival curve of runs, from when they solved a task and how long the others had.

    Example:
        >>> curve = kaplan_meier([100, 300], [200, 400])
        >>> curve.steps, curve.share
        (array([  0, 100, 300]), array([1.   , 0.75 , 0.375]))
        >>> curve.median
        300
    """
    steps, share = [0], [1.0]
    for step in sorted(set(at)):
        risk = sum(one >= step for one in (*at, *given))
        steps.append(step)
        share.append(share[-1] * (1 - sum(one == step for one in at) / risk))
    return Survival(label, tuple(at), tuple(given), np.array(steps), np.array(share))


def log_rank(first: Survival, second: Survival) -> float:
    """How likely curves at least as far apart are, if both variants solve a task alike.

    Example:
        >>> quick = kaplan_meier([1, 2, 3, 4], [])
        >>> slow = kaplan_meier([8, 9], [10, 10])
        >>> round(log_rank(quick, slow), 3)
        0.007

    References:
        Mantel (1966), Evaluation of survival data and two new rank order statistics.
    """
    from scipy.stats import CensoredData, logrank  # takes 0.9 s to import

    if not (first.at or second.at):
        return 1.0
    censored: list[Any] = [
        CensoredData(uncensored=one.at, right=one.given) for one in (first, second)
    ]
    return float(logrank(censored[0], censored[1]).pvalue)


class Ending(NamedTuple):
    """How a run ended; ``multiple`` of the unit is where one that stands still does."""

    fate: Fate
    loss: float
    multiple: int | None = None


def ending(run: Run, unit: float, *, window: float = 0.2, near: float = 0.15) -> Ending:
    """How a run ended, as `fate` tells it.

    Args:
        run: one that ended.
        unit: the loss of one symbol.
        window: the last part, as a share of all validation losses.
        near: how far from a multiple is still at it, in units.
    """
    losses = list(run.series("valid", "loss").values())
    solved, failed = run.test.get("solved") == 1.0, run.status == "failed"
    return fate(losses, unit, solved=solved, failed=failed, window=window, near=near)


def fate(
    losses: Sequence[float],
    unit: float,
    *,
    solved: bool = False,
    failed: bool = False,
    window: float = 0.2,
    near: float = 0.15,
) -> Ending:
    """Whether a run solved its task, exploded, or stood still at a multiple of a unit of loss.

    A network that keeps all but j of the symbols of the copying task has j times the loss of one
    symbol, ``CopyMemory(lag).baseline / length``. A run stands still if four in five of its
    validation losses over the last part of its updates are within `near` units of such a multiple;
    it exploded if it diverged, or ended at more than twice its first validation loss.

    Args:
        losses: on validation data, in their order.
        unit: the loss of one symbol.
        solved: it solved the task.
        failed: it diverged.
        window: the last part, as a share of all losses.
        near: how far from a multiple is still at it, in units.

    Example:
        >>> fate([0.17, 0.12, 0.0348, 0.0345, 0.0347], unit=0.0173, window=0.6)
        Ending(fate='stands still', loss=0.0347, multiple=2)
    """
    if not unit > 0:
        raise InputError(f"expected the unit of a loss to be above zero, but got {unit!r}.")
    last = losses[-1] if losses else math.nan
    if solved:
        return Ending("solved", last)
    if failed or (losses and not last <= HIGH * losses[0]):  # NaN as well
        return Ending("exploded", last)
    late = [loss for loss in losses[-max(2, round(window * len(losses))) :] if loss < math.inf]
    multiple = round(median(late) / unit) if late else 0
    at = sum(abs(loss / unit - multiple) <= near for loss in late)
    if multiple and at >= STILL * len(late):
        return Ending("stands still", last, multiple)
    return Ending("on its way", last)


def peak(losses: Sequence[float]) -> float | None:
    """The largest loss of a run that exploded on its way, whether or not it came back.

    Args:
        losses: on validation data, in their order.

    Returns:
        ``None`` if none was more than twice the first.

    Example:
        >>> peak([0.17, 2.9e6, 0.02]), peak([0.17, 0.2, 0.02])
        (2900000.0, None)
    """
    highest = max(losses, default=0.0)
    return highest if losses and highest > HIGH * losses[0] else None


def _given(run: Run) -> int:
    return int(run.config["train"]["steps"])
