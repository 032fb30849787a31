"""Two variants over seeds: is one better, and does one vary less?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev, variance

from attractor.errors import InputError


@dataclass(frozen=True)
class Contrast:
    """What the values of a first variant less those of a second come to.

    ``low`` and ``high`` are the 95% interval of the difference of means, ``welch`` the p of
    Welch's t test; ``ratio`` is that of the standard deviations, and ``brown_forsythe`` the p of
    that test of equal variances.
    """

    difference: float
    low: float
    high: float
    welch: float
    ratio: float
    brown_forsythe: float


def contrast(first: Sequence[float], second: Sequence[float]) -> Contrast:
    r"""Compare means by Welch's t test, and variances by Brown and Forsythe's.

    .. math::
        t = \frac{\bar a - \bar b}{\sqrt{s_a^2 / n_a + s_b^2 / n_b}}, \qquad
        \nu = \frac{(s_a^2 / n_a + s_b^2 / n_b)^2}
            {\frac{(s_a^2 / n_a)^2}{n_a - 1} + \frac{(s_b^2 / n_b)^2}{n_b - 1}}

    Brown and Forsythe's test is an analysis of variance of the distances from each median, so it
    holds for values that are not normal, such as accuracies with a few runs far below.

    Args:
        first: one value for each seed.
        second: likewise; the numbers of seeds may differ.

    Example:
        >>> found = contrast([3.0, 4.0, 5.0], [1.0, 2.0, 6.0])
        >>> found.difference, round(found.ratio, 2), round(found.welch, 2)
        (1.0, 0.38, 0.59)

    References:
        Welch (1947), The generalization of Student's problem when several different population
        variances are involved; Brown and Forsythe (1974), Robust tests for the equality of
        variances.
    """
    from scipy.stats import levene, t  # takes 0.9 s to import

    for values in (first, second):
        if len(values) < 2 or not all(map(math.isfinite, values)):
            raise InputError(
                f"expected at least two finite values of each variant, but got {list(values)}. "
                "Try more seeds."
            )
    parts = [variance(values) / len(values) for values in (first, second)]
    if not all(parts):
        raise InputError(
            "expected values that differ over the seeds of each variant, but got the same ones. "
            "Try a measure that is not the same in all runs."
        )
    error = math.sqrt(sum(parts))
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(values) - 1) for part, values in zip(parts, (first, second), strict=True)
    )
    difference = fmean(first) - fmean(second)
    half = float(t.ppf(0.975, freedom)) * error
    return Contrast(
        difference,
        difference - half,
        difference + half,
        float(2 * t.sf(abs(difference) / error, freedom)),
        stdev(first) / stdev(second),
        float(levene(first, second, center="median").pvalue),
    )
