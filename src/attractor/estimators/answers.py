"""Answers as users have them, classes or numbers, as arrays that are known to be whole."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from attractor.errors import InputError


def classes_of(y: Any, owner: str, otherwise: str) -> NDArray[Any]:
    """The class of each series, of any type that can be sorted.

    Args:
        y: as it was given.
        owner: whom messages name.
        otherwise: what to try where they are numbers.

    Example:
        >>> classes_of(["a", "b"], "compare", "real=True").tolist()
        ['a', 'b']
    """
    _expect_given(y, owner, "the class of")
    try:
        found: NDArray[Any] = column_or_1d(y, warn=True)
    except ValueError as error:
        raise InputError(
            f"expected the class of each series, but: {_on_a_line(error)}. Give one for each."
        ) from error
    _expect_whole(found)
    try:
        with (
            warnings.catch_warnings()
        ):  # of many classes, which are refused where they are too many
            warnings.filterwarnings("ignore", "The number of unique classes")
            check_classification_targets(found)
    except ValueError as error:
        raise InputError(
            f"expected the class of each series, but: {error} Try {otherwise}."
        ) from error
    return found


def numbers_of(y: Any, owner: str, otherwise: str) -> NDArray[np.float64]:
    """One number for each series, or several ``(n, numbers)``.

    Args:
        y: as it was given.
        owner: whom messages name.
        otherwise: what to try where they are classes.

    Example:
        >>> numbers_of([1, 2], "compare", "real=False")
        array([1., 2.])
    """
    _expect_given(y, owner, "a number for")
    if getattr(getattr(y, "dtype", None), "kind", "") in ("m", "M"):
        raise InputError(
            f"expected a number for each series, but got dates ({y.dtype}). Give numbers, such as "
            "days since the first."
        )
    try:
        found: NDArray[np.float64] = check_array(
            y, ensure_2d=False, dtype=np.float64, input_name="y"
        )
    except (TypeError, ValueError) as error:
        raise InputError(
            f"expected a number for each series, but: {_on_a_line(error)}. Try {otherwise} for "
            "classes, and leave out series without a number."
        ) from error
    return found


def expect_one_each(series: int, answers: int) -> None:
    """Refuse another number of answers than of series."""
    if series != answers:
        raise InputError(
            f"expected an answer for each series, but got {series} series and {answers} answers. "
            "Give y of the length of X."
        )


def _expect_given(y: Any, owner: str, what: str) -> None:
    if y is None:
        raise InputError(
            f"{owner} requires y to be passed, but the target y is None. Give {what} each series."
        )
    if np.ma.is_masked(y):
        raise InputError(
            "expected an answer for each series, but some are masked. Leave these series out."
        )


def _expect_whole(y: NDArray[Any]) -> None:
    """Refuse classes that are missing, and some that cannot be sorted among each other."""
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise InputError(
            "expected the class of each series, but some are NaN or infinity (inf). Leave series "
            "without a class out."
        )
    if y.dtype != object:
        return
    for place, one in enumerate(y):
        if one is None or (isinstance(one, float) and one != one):
            raise InputError(
                f"expected the class of each series, but series {place} has none ({one}). Leave "
                "it out."
            )
        if isinstance(one, str) != isinstance(y[0], str):
            raise InputError(
                f"expected classes of one kind, words or numbers, but got {y[0]!r} and {one!r}. "
                "Try words alone."
            )


def _on_a_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
