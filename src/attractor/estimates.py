"""What several seeds say together: a mean and its interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Any


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds; ``half_width`` is that of its 95% interval.

    It is ``None`` for one seed, and where a value is infinite or NaN.
    """

    values: tuple[float, ...]
    mean: float
    median: float
    half_width: float | None

    @property
    def n(self) -> int:
        return len(self.values)


def estimate(values: Sequence[float]) -> Estimate:
    """The mean with its 95% interval by Student's t distribution.

    Example:
        >>> found = estimate([1.0, 2.0, 3.0])
        >>> round(found.half_width, 3)  # 4.303 * 1 / sqrt(3)
        2.484
    """
    n = len(values)
    known = n > 1 and all(map(math.isfinite, values))
    half = float(t_quantile(n)) * stdev(values) / math.sqrt(n) if known else None
    return Estimate(tuple(values), fmean(values), median(values), half)


def t_quantile(n: Any) -> Any:
    """How many standard errors the 95% interval of a mean of n values reaches to each side."""
    from scipy.special import stdtrit  # scipy.stats has it too, and takes 0.9 s to import

    return stdtrit(n - 1, 0.975)
