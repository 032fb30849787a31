"""Numbers on a page: as `attractor.results.numbers` has them, without zeros that say nothing."""

import math

from attractor.estimates import Estimate
from attractor.results import numbers


def plain(value: float | None, share: bool = False) -> str:
    """Up to four significant digits.

    Example:
        >>> plain(4.6), plain(0.92, share=True), plain(1 / 3)
        ('4.6', '92', '0.3333')
    """
    text = numbers.plain(value, share)
    return text if value is None else _short(text, 100 * value if share else value)


def with_interval(found: Estimate | None, share: bool) -> str:
    """Two digits of the half width, and the mean to the same place; a sure mean as it is.

    Example:
        >>> with_interval(Estimate((0.92, 0.92), 0.92, 0.92, 0.0), share=True)
        '92 ± 0'
    """
    text = numbers.with_interval(found, share)
    if found is None or found.half_width:
        return text
    mean, sign, half = text.partition(" ± ")
    return f"{_short(mean, 100 * found.mean if share else found.mean)}{sign}{half}"


def _short(text: str, value: float) -> str:
    """A number without the zeros at its end, if it is no other than that."""
    if "." not in text or "e" in text:
        return text
    exact = math.isclose(float(text.replace(",", "")), value, rel_tol=1e-9)
    return text.rstrip("0").rstrip(".") if exact else text
