"""Pen strokes of handwritten digits, from their file."""

import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attractor.errors import InputError
from attractor.tasks.data.root import VARIABLE, data_root

FILE = "mnist-strokes/mnist_strokes_ragged.npz"


class Strokes(NamedTuple):
    """Digits as pen movements, one after the other.

    Shape:
        points ``(sum of lengths, 4)``: dx, dy, end of stroke, end of digit; starts ``(digits,)``,
        the first row of each; lengths and labels ``(digits,)``.
    """

    points: NDArray[np.int8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    labels: NDArray[np.int64]


def load_strokes(half: Literal["train", "test"], root: str | Path | None = None) -> Strokes:
    """The pen strokes of one half of MNIST, in the order of its images.

    The file, ``mnist-strokes/mnist_strokes_ragged.npz`` below the data root, has arrays
    ``train_points`` (rows dx, dy, end of stroke, end of digit), ``train_lengths`` and
    ``train_labels``, and the same of test. The first row of a digit holds where it starts, which
    is set to (0, 0) here, as in the thesis.

    Args:
        half: which.
        root: the data root; ``None`` follows `data_root`.

    References:
        De Jong (2016), Incremental sequence learning, arXiv:1611.03068; Chandar (2020), section
        3.7.2.
    """
    path = data_root(root) / FILE
    if not path.exists():
        raise InputError(
            f"expected the pen strokes of MNIST at {path}, but there is no such file. "
            f"Put it there, or set {VARIABLE} to a folder that has it."
        )
    return _loaded(path, half, path.stat().st_mtime_ns)


@lru_cache(maxsize=2)  # twenty levels read one file
def _loaded(path: Path, half: str, _: int) -> Strokes:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            points, lengths, labels = (
                arrays[f"{half}_{name}"] for name in ("points", "lengths", "labels")
            )
    except (KeyError, ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise InputError(
            f"expected pen strokes in {path}, but got: {error}. Get the file again."
        ) from error
    return checked(path, points, lengths.astype(np.int64), labels.astype(np.int64))


def checked(
    path: Path,
    points: NDArray[np.int8],
    lengths: NDArray[np.int64],
    labels: NDArray[np.int64],
) -> Strokes:
    """The strokes, each from (0, 0), once the arrays are known to go together."""
    whole = points.ndim == 2 and points.shape[1] == 4 and lengths.shape == labels.shape
    if not whole or len(lengths) == 0 or lengths.min() < 1 or lengths.sum() != len(points):
        raise InputError(
            f"expected points of 4 numbers and a length and a label for each digit in {path}, but "
            f"got {points.shape} points, {lengths.shape} lengths that sum to {lengths.sum()} and "
            f"{labels.shape} labels. Get the file again."
        )
    if labels.min() < 0 or labels.max() > 9:
        raise InputError(
            f"expected labels from 0 to 9 in {path}, but got {labels.min()} to {labels.max()}. "
            "Get the file again."
        )
    starts = np.concatenate([[0], lengths.cumsum()[:-1]])
    points = points.copy()
    points[starts, :2] = 0
    return Strokes(points, starts, lengths, labels)
