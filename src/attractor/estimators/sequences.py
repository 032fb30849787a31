"""Series as users have them, as padded tensors."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_array
from torch import Tensor

from attractor.errors import InputError, shortened

HINT = "Give an array (n, time, features) or (n, time), or a list of arrays (time, features)."


class Sequences(NamedTuple):
    """Series side by side.

    Shape:
        x ``(n, time, features)``, padded with zeros at the end; lengths ``(n,)``, or ``None`` where
        all are equally long.
    """

    x: Tensor
    lengths: Tensor | None


def sequences(given: Any) -> Sequences:
    """Series as one tensor of doubles, once they are known to be whole.

    Args:
        given: an array ``(n, time, features)``; ``(n, time)`` for one feature; or a list of arrays
            ``(time, features)`` or ``(time,)``, which need not be equally long.

    Example:
        >>> sequences(np.ones((5, 7))).x.shape
        torch.Size([5, 7, 1])
        >>> sequences([np.ones((3, 2)), np.ones((4, 2))]).lengths
        tensor([3, 4])
    """
    if isinstance(given, list | tuple):
        if not given:
            raise InputError(f"expected at least one series, but got none. {HINT}")
        given = [_detached(one) for one in given]
    _expect_unmasked(given if isinstance(given, list | tuple) else [given])
    given = _unboxed(_detached(given))
    rows = _rows(given)
    found = _array(given) if rows is None else _padded(rows)
    _expect_finite(found)
    return found


def _rows(given: Any) -> list[NDArray[np.float64]] | None:
    """The series one by one where they differ in length; ``None`` where one array holds them."""
    boxed = isinstance(given, np.ndarray) and given.dtype == object and given.ndim == 1
    if not (boxed or isinstance(given, list | tuple)) or not len(given):
        return None
    try:
        found = [np.asarray(one) for one in given]
        _expect_numbers(found)
        rows = [one.astype(np.float64) for one in found]
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(
            f"expected series of numbers, but got {shortened(given, 60)}: {error}. {HINT}"
        ) from error
    if len({one.shape for one in rows}) == 1 and not boxed:
        return None
    return rows


def _padded(rows: Sequence[NDArray[np.float64]]) -> Sequences:
    kinds = {one.shape[1:] for one in rows}
    if len(kinds) > 1 or rows[0].ndim not in (1, 2) or kinds == {(0,)}:
        raise InputError(
            "expected a list of series with the same features each, but got shapes "
            f"{' and '.join(map(str, sorted({one.shape for one in rows})[:4]))}. {HINT}"
        )
    lengths = torch.tensor([len(one) for one in rows])
    if not lengths.all():
        raise InputError(
            f"expected at least one step in each series, but series {int(lengths.argmin())} is "
            "empty. Leave it out."
        )
    x = torch.zeros(len(rows), int(lengths.max()), *rows[0].shape[1:], dtype=torch.float64)
    for place, one in enumerate(rows):
        x[place, : len(one)] = torch.tensor(one)
    return Sequences(x if x.ndim == 3 else x[..., None], _told(lengths))


def _array(given: Any) -> Sequences:
    _expect_numbers([given])
    shape = tuple(given.shape if hasattr(given, "shape") else np.asarray(given).shape)
    if len(shape) not in (2, 3):
        alone = " Reshape your data, as X[None] for one series." if len(shape) == 1 else ""
        raise InputError(
            "expected an array of series of two or three dimensions, but got one of shape "
            f"{shape}.{alone} {HINT}"
        )
    try:
        array = check_array(
            given, dtype="numeric", allow_nd=True, ensure_all_finite=False, ensure_min_samples=0
        )
        _expect_numbers([array])
        x = torch.from_numpy(np.array(array, np.float64))
    except InputError:
        raise
    except ValueError as error:
        raise InputError(
            f"expected series of numbers, but: {' '.join(str(error).split())} {HINT}"
        ) from error
    if 0 in x.shape:
        raise InputError(
            f"expected at least one series of one step, but got an array of shape "
            f"{tuple(x.shape)}. {HINT}"
        )
    return Sequences(x if x.ndim == 3 else x[..., None], None)


def _detached(given: Any) -> Any:
    """A tensor as an array, whatever it is part of and wherever it is; anything else as it is."""
    if not isinstance(given, Tensor):
        return given
    found = given.detach().cpu()
    return (found.double() if found.is_floating_point() else found).numpy()


def _unboxed(given: Any) -> Any:
    """A column of a table that holds a series in each place as an array; anything else as it is."""
    kind = getattr(getattr(given, "dtype", None), "kind", "")
    column = kind == "O" and getattr(given, "ndim", 0) == 1
    return np.asarray(given, dtype=object) if column else given


def _expect_unmasked(given: Sequence[Any]) -> None:
    """Refuse masked arrays, whose mask would be lost."""
    for one in given:
        if np.ma.is_masked(one):
            raise InputError(
                "expected whole series, but some of their values are masked. Fill in what is "
                "masked, x.filled(...), or leave these series out."
            )


def _expect_numbers(given: Sequence[Any]) -> None:
    """Refuse complex arrays, of which half would be lost, and dates, which have no scale."""
    kinds = {getattr(getattr(one, "dtype", None), "kind", "") for one in given}
    if kinds & {"m", "M"}:
        raise InputError(
            "expected series of numbers, but got dates (datetime64 or timedelta64). Leave them "
            "out, or give numbers, such as hours since the start of a series."
        )
    if "c" in kinds:
        raise InputError(
            "expected series of real numbers, but: Complex data not supported. Give real and "
            "imaginary parts as features of their own."
        )


def _told(lengths: Tensor) -> Tensor | None:
    return lengths if int(lengths.min()) < int(lengths.max()) else None


def _expect_finite(found: Sequences) -> None:
    beyond = ~found.x.isfinite()
    if beyond.any():
        series, step, _ = beyond.nonzero()[0].tolist()
        value = found.x[beyond][0].item()
        raise InputError(
            f"expected finite numbers, but series {series} has "
            f"{'NaN' if value != value else value} at step {step}. Fill in what is missing, or "
            "leave the series out."
        )
