"""Checks of arguments, so that a slip is named where it is made."""

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, TypeVar

from attractor.errors import InputError, shortened, unknown

T = TypeVar("T")


def plain(value: Any) -> Any:
    """A number or a truth value as Python's own, whosever it is; anything else as it is.

    Example:
        >>> import numpy as np
        >>> plain(np.int64(3)), plain(np.bool_(True)), plain("3")
        (3, True, '3')
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    truth = str(getattr(value, "dtype", "")) == "bool" and getattr(value, "shape", None) == ()
    return bool(value) if truth else value


def whole(name: str, value: object, least: int) -> int:
    """The value, once it is known to be a whole number of at least `least`.

    Example:
        >>> whole("lag", 100, 1)
        100
    """
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(
            f"expected {name} to be a whole number, but got {value!r}. Try {name}={least}."
        )
    if value < least:
        raise InputError(
            f"expected {name} to be at least {least}, but got {value}. Try {name}={least}."
        )
    return value


def flag(name: str, value: object) -> bool:
    """The value, once it is known to be a truth value, as the word "false" in quotes is not.

    Example:
        >>> flag("variable", True)
        True
    """
    value = plain(value)
    if not isinstance(value, bool):
        raise InputError(
            f"expected {name} to be true or false, but got {value!r}. Try it without quotes."
        )
    return value


def number(name: str, value: object, least: float, most: float = math.inf) -> float:
    """The value, once it is known to be a finite number from `least` to `most`.

    Example:
        >>> number("decay", 0.9, 0, 1)
        0.9
    """
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(
            f"expected {name} to be a number, but got {value!r}. Try {name}={least:g}."
        )
    if not least <= value <= most or math.isinf(value):
        bounds = f"at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
        raise InputError(f"expected {name} to be {bounds}, but got {value}. Try {name}={least:g}.")
    return value


def instance(name: str, value: object, kind: type[T], hint: str) -> T:
    """The value, once it is known to be one of a kind, and not the kind itself or its name.

    Example:
        >>> instance("generator", 3, int, "3")
        3
    """
    if not isinstance(value, kind):
        got = f"the class {value.__name__}" if isinstance(value, type) else shortened(value)
        raise InputError(f"expected {name} to be a {kind.__name__}, but got {got}. Try {hint}.")
    return value


def one_of(name: str, value: str, allowed: Iterable[str]) -> str:
    """The value, once it is known to be among those allowed.

    Example:
        >>> one_of("order", "rows", ("rows", "pixels"))
        'rows'
    """
    if value not in allowed:
        raise unknown(name, value, allowed)
    return value


def positive(name: str, value: object) -> float:
    """The value, once it is known to be a finite number above zero.

    Example:
        >>> positive("lr", 0.1)
        0.1
    """
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise InputError(
            f"expected {name} to be a finite number above zero, but got {value!r}. Try {name}=0.1."
        )
    return float(value)
