r"""What a learner of levels is able to do.

In :math:`R`, of shape ``(levels, levels)``, the row l has the accuracies on all levels after the
learner was done with level l, passed or not; rows that it did not reach are NaN.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attractor.measures import Measure


@dataclass(frozen=True, eq=False)
class LifelongResult:
    """How far a learner came, and what it kept.

    Args:
        matrix: R.
        current: the running accuracy with which each level ended.
        completed: how many levels it passed.
        expansions: the levels, from 0, at which it grew.
        parameters: at the end of each level.

    Example:
        >>> R = torch.tensor([[0.9, 0.6, 0.5], [0.7, 0.8, 0.6], [torch.nan] * 3])
        >>> found = LifelongResult(R, [0.9, 0.8], 1, [1], [10, 20])
        >>> [round(value, 2) for value in (found.previous, found.future)]
        [0.7, 0.58]
    """

    matrix: Tensor
    current: Sequence[float]
    completed: int
    expansions: Sequence[int]
    parameters: Sequence[int]

    @property
    def per_task_previous(self) -> list[float]:
        """After each level but the first, the mean accuracy on those before it."""
        rows = range(1, len(self.current))
        return [float(self.matrix[row, :row].mean()) for row in rows]

    @property
    def per_task_future(self) -> list[float]:
        """After each level, the mean accuracy on those that are still to come."""
        rows = range(min(len(self.current), len(self.matrix) - 1))
        return [float(self.matrix[row, row + 1 :].mean()) for row in rows]

    @property
    def previous(self) -> float:
        """The mean of `per_task_previous`; NaN if the first level was the last."""
        return _mean(self.per_task_previous)

    @property
    def future(self) -> float:
        """The mean of `per_task_future`."""
        return _mean(self.per_task_future)

    @property
    def metrics(self) -> dict[str, float]:
        """All of them by name."""
        return {
            "levels": float(self.completed),
            "current_accuracy": _mean(list(self.current)),
            "previous_accuracy": self.previous,
            "future_accuracy": self.future,
            "expansions": float(len(self.expansions)),
        }


MEASURES = {
    "levels": Measure("max", "levels"),
    "current_accuracy": Measure("max", "share"),
    "previous_accuracy": Measure("max", "share"),
    "future_accuracy": Measure("max", "share"),
    "expansions": Measure("none", ""),
}
"""What each of them is."""


def _mean(values: list[float]) -> float:
    return float(torch.tensor(values, dtype=torch.float64).mean()) if values else float("nan")
