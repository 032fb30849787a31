"""Files of time series as estimators read them."""

from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attractor.checks import one_of
from attractor.errors import InputError
from attractor.tasks.data.series import read_answers

Answers = Literal["auto", "classes", "numbers"]
"""What the labels of a file are; ``"auto"`` looks at them."""


EXACT = 2.0**53
"""Whole numbers from here on are not told apart as floats."""


class Given(NamedTuple):
    """The series of a file.

    Args:
        x: an array ``(n, time, features)``, or a list of arrays where they are not equally long.
        y: the names of the classes, or numbers; ``None`` where there are no labels.
        real: whether the labels are numbers.
    """

    x: Any
    y: NDArray[Any] | None
    real: bool


def read(
    path: str | Path,
    *,
    answers: Answers = "auto",
    labelled: bool = True,
    needed: bool = True,
    otherwise: str = "--answers classes",
) -> Given:
    """The series of a ``.tsv`` or ``.csv`` file, or of a ``.ts`` file: see `read_answers`.

    Args:
        path: the file, plain or compressed (``.gz``, ``.xz``).
        answers: what its labels are.
        labelled: whether it has labels.
        needed: whether they are read; if not, some may be missing.
        otherwise: what to try where they are no numbers although they should be.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "some.tsv").write_text("a\\t1\\t2\\nb\\t3\\t4\\n")
        ...     given = read(Path(folder, "some.tsv"))
        >>> given.x.shape, given.y.tolist(), given.real
        ((2, 2, 1), ['a', 'b'], False)
    """
    one_of("answers", answers, ("auto", "classes", "numbers"))
    series, numbers = read_answers(Path(path), labelled=labelled, needed=needed)
    lengths = series.lengths
    x: Any = series.x
    if lengths is not None:
        x = [one[:length] for one, length in zip(x, lengths, strict=True)]
    if not (needed and series.y) or all(label in ("", "?") for label in series.y):
        return Given(x, None, False)
    real = numbers if answers == "auto" else answers == "numbers"
    if not real:
        return Given(x, np.array([class_name(label) for label in series.y]), False)
    try:
        return Given(x, np.array([float(label) for label in series.y]), True)
    except ValueError as error:
        raise InputError(
            f"expected numbers as labels in {path}, but: {error}. Try {otherwise}."
        ) from error


def series_told(x: Any) -> str:
    """How many series there are, of how many steps and features.

    Args:
        x: as `read` gives them.

    Example:
        >>> series_told(np.zeros((5, 140, 1))), series_told([np.zeros((7, 2)), np.zeros((9, 2))])
        ('5 series of 140 steps', '2 series of 7 to 9 steps and 2 features')
    """
    lengths = sorted(map(len, x))
    steps = " to ".join(f"{one:,}" for one in sorted({lengths[0], lengths[-1]}))
    features = x[0].shape[1]
    told = f"{len(x):,} series of {steps} step{'' if lengths[-1] == 1 else 's'}"
    return told + (f" and {features} features" if features > 1 else "")


def kind_told(given: Given, answers: Answers) -> str:
    """What the labels of a file are taken for, and why.

    Args:
        given: as `read` gives them, with labels.
        answers: what was asked for.

    Example:
        >>> kind_told(Given(None, np.array([0.11, 2.3]), True), "auto")
        'labels are numbers that are not all whole: a regression, from 0.11 to 2.3 (--answers \
classes for classes)'
        >>> kind_told(Given(None, np.array(["up", "down"]), False), "auto")
        'labels are words: 2 classes'
    """
    assert given.y is not None
    if given.real:
        is_whole = all(float(one).is_integer() for one in given.y)
        why = "numbers, as the file says" if is_whole else "numbers that are not all whole"
        kind = f"a regression, from {given.y.min():g} to {given.y.max():g}"
        hint = " (--answers classes for classes)"
    else:
        named = sorted({*given.y.tolist()})
        counted = all(_is_number(one) for one in named)
        why = "whole numbers" if counted else "words"
        kind = f"{len(named)} class{'' if len(named) == 1 else 'es'}"
        hint = " (--answers numbers for a regression)" if counted else ""
    if answers == "auto":
        return f"labels are {why}: {kind}{hint}"
    return f"labels are {answers}, as --answers says: {kind}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def class_name(label: str) -> str:
    """What the class of a label is called: by one name where labels are equal as numbers.

    Example:
        >>> [class_name(label) for label in ("1", "1.0", "-2.50", "up", "nan")]
        ['1', '1', '-2.5', 'up', 'nan']
    """
    try:
        number = float(label)
    except ValueError:
        return label
    if not abs(number) < EXACT:
        return label
    return str(int(number)) if number.is_integer() else str(number)


def with_answers(given: Given, path: str | Path) -> tuple[Any, NDArray[Any]]:
    """The series and their labels, once they are known to have some."""
    if given.y is None:
        raise InputError(
            f"expected a label for each series in {path} to learn from, but there are none. Give a "
            "file whose lines begin (.tsv, .csv) or end (.ts) with one."
        )
    return given.x, given.y
