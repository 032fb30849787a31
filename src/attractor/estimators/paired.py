r"""Whether one of several models is better over the folds of a cross-validation.

The training parts of folds overlap, so their scores vary less than those of fresh data would. The
variance of a mean over :math:`k` folds is therefore taken as :math:`(1/k + 1/(k - 1))\,s^2` rather
than :math:`s^2 / k`: Nadeau and Bengio's corrected t statistic.

References:
    Nadeau and Bengio (2003), Inference for the generalization error, Machine Learning 52.
"""

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from attractor.estimates import Estimate, estimate, t_quantile, t_tail


def over_folds(scores: Sequence[float]) -> Estimate:
    """The mean score with its 95% interval, corrected for the overlap of training parts.

    Args:
        scores: of each fold, at least two.

    Example:
        >>> round(over_folds([0.8, 0.9, 1.0]).half_width, 3)  # 4.303 * 0.1 * sqrt(1/3 + 1/2)
        0.393
    """
    plain = estimate(scores)
    half = float(t_quantile(len(scores))) * _error(scores)
    return Estimate(plain.values, plain.mean, plain.median, half)


def corrected_p(scores: Sequence[float], others: Sequence[float]) -> float:
    """How likely a difference as large is, in either direction, if both were equally good.

    Args:
        scores: of one model, fold by fold.
        others: of another, on the same folds.

    Example:
        >>> round(corrected_p([0.9, 0.8, 0.9, 0.95], [0.7, 0.7, 0.75, 0.8]), 3)
        0.017
    """
    apart = [a - b for a, b in zip(scores, others, strict=True)]
    mean, error = fmean(apart), _error(apart)
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    return 2 * t_tail(abs(mean) / error, len(apart))


def _error(values: Sequence[float]) -> float:
    folds = len(values)
    spread = stdev(values)
    # sums of equal numbers differ in the last bit
    return 0.0 if spread < 1e-12 else math.sqrt(1 / folds + 1 / (folds - 1)) * spread
