"""Numbers as a reader likes them: rounded to what is known, with units."""

import math
from collections.abc import Iterable

from attractor.estimates import Estimate
from attractor.measures import Measure

MISSING = "–"


def is_share(measure: Measure, values: Iterable[float]) -> bool:
    """Whether numbers are shares of one, to be shown in per cent; differences of shares too."""
    return measure.unit == "share" and all(-1 <= value <= 1 for value in values)


def with_interval(found: Estimate | None, share: bool) -> str:
    """``94.1 ± 0.5``: two digits of the half width, and the mean to the same place.

    Example:
        >>> with_interval(Estimate((0.9, 0.94), 0.9412, 0.94, 0.00531), share=True)
        '94.12 ± 0.53'
    """
    if found is None:
        return MISSING
    scale = 100 if share else 1
    mean = found.mean * scale
    if found.half_width is None:
        return plain(mean)
    half = found.half_width * scale
    if half == 0:
        return f"{plain(mean)} ± 0"
    places = 1 - math.floor(math.log10(half))
    if places > 6:
        return f"{mean:.3g} ± {half:.2g}"
    places = max(places, 0)
    mean = round(mean, places) + 0.0  # which has no sign if it is zero
    return f"{mean:,.{places}f} ± {half:,.{places}f}"


def plain(value: float | None, share: bool = False) -> str:
    """Four significant digits.

    Example:
        >>> plain(0.5), plain(0.98765, share=True), plain(123456.0), plain(0.00001234)
        ('0.5000', '98.77', '123,456', '1.234e-05')
    """
    if value is None:
        return MISSING
    value = 100 * value if share else value
    if value == 0:
        return "0"
    places = 3 - math.floor(math.log10(abs(value)))
    return f"{value:.3e}" if places > 7 else f"{value:,.{max(places, 0)}f}"


def count(value: int | None) -> str:
    """``68,736``."""
    return MISSING if value is None else f"{value:,}"


def duration(seconds: float | None) -> str:
    """``0.8 s``, ``41 s``, ``3 min 20 s``, ``2 h 05 min``."""
    if seconds is None:
        return MISSING
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def plural(number: int, word: str) -> str:
    """``1 run``, ``2 runs``."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
