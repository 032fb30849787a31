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


def t_tail(t: float, n: int) -> float:
    """The probability beyond t of Student's distribution with n - 1 degrees of freedom.

    Example:
        >>> round(t_tail(4.303, 3), 4)
        0.025
    """
    from scipy.special import stdtr

    return float(stdtr(n - 1, -t))


def holm(values: Sequence[float]) -> list[float]:
    """Chances of several tests, raised so that one of them errs as seldom as a single test would.

    Example:
        >>> holm([0.04, 0.01, 0.5])
        [0.08, 0.03, 0.5]

    References:
        Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal
        of Statistics 6.
    """
    order = sorted(range(len(values)), key=values.__getitem__)
    raised, highest = [0.0] * len(values), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(values) - rank) * values[place]))
        raised[place] = highest
    return raised
