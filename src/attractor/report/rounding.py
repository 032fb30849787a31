"""Numbers on a page: as `attractor.results.numbers` has them, without zeros that say nothing."""

import math
from collections.abc import Sequence

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


def alike(values: Sequence[float | None], share: bool = False) -> list[str]:
    """A column of numbers, each with as many decimals as the one that needs most.

    Example:
        >>> alike([45.6, 38.0, 37.2]), alike([40.0, 38.0])
        (['45.6', '38.0', '37.2'], ['40', '38'])
    """
    most = max((_decimals(plain(value, share)) for value in values), default=0)
    whole = [numbers.plain(value, share) for value in values]
    return [text if text == numbers.MISSING else _cut(text, most) for text in whole]


def _decimals(text: str) -> int:
    return 0 if "e" in text else len(text.partition(".")[2])


def _cut(text: str, most: int) -> str:
    """A number with at most so many decimals, the rest of which are zeros."""
    if "." not in text or "e" in text:
        return text
    head, _, tail = text.partition(".")
    return f"{head}.{tail[:most]}" if most else head


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


def with_intervals(found: Sequence[Estimate | None], share: bool) -> list[str]:
    """A column of means: with the digits of their intervals, those without one alike."""
    bare = alike([one.mean if one and one.half_width is None else None for one in found], share)
    return [
        text if one and one.half_width is None else with_interval(one, share)
        for one, text in zip(found, bare, strict=True)
    ]


def _short(text: str, value: float) -> str:
    """A number without the zeros at its end, if it is no other than that."""
    if "." not in text or "e" in text:
        return text
    exact = math.isclose(float(text.replace(",", "")), value, rel_tol=1e-9)
    return text.rstrip("0").rstrip(".") if exact else text
