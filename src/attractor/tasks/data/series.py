"""Time series in the formats of the UCR and UEA archives, and tables, plain or compressed."""

import csv
import logging
import lzma
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attractor.errors import InputError
from attractor.tasks.data.root import VARIABLE, data_root
from attractor.tasks.data.text import read_text

logger = logging.getLogger(__name__)

FOLDERS = ("ucr", "UCRArchive_2018")
LABELS = ("label", "class", "target", "y")
"""What a column of labels is called."""
_FILL = ("", "nan")
FORMS = tuple(f"{form}{packed}" for form in (".tsv", ".ts") for packed in ("", ".gz", ".xz"))


class Series(NamedTuple):
    """Time series and their classes.

    Shape:
        x ``(series, time, dimensions)``, padded with zeros at the end; lengths ``(series,)``, or
        ``None`` where all are equally long; y ``(series,)``, the classes as they are written, or
        nothing.
    """

    x: NDArray[Any]
    lengths: NDArray[np.int64] | None
    y: list[str]


def load_series(
    name: str, half: Literal["train", "test"], root: str | Path | None = None
) -> Series:
    """One half of a data set of the UCR or UEA archive, in single precision.

    The file ``NAME_TRAIN.tsv`` or ``.ts`` is looked for below the data root in ``ucr`` and
    ``UCRArchive_2018``, and there in a folder of the data set's name; it may be compressed.

    Args:
        name: the data set, as in the archive.
        half: which of its files.
        root: the data root; ``None`` follows `data_root`.
    """
    folder = data_root(root)
    for archive, inner, form in product(FOLDERS, ("", name), FORMS):
        path = folder / archive / inner / f"{name}_{half.upper()}{form}"
        if path.exists():
            found = read_series(path)
            return found._replace(x=found.x.astype(np.float32))
    raise InputError(
        f"expected {name}_{half.upper()}.tsv or .ts in {folder / FOLDERS[0]}, but there is none. "
        f"Get it from timeseriesclassification.com, or set {VARIABLE} to a folder that has it."
    )


def read_series(path: Path) -> Series:
    """The time series of a file, each a line; `read_answers` says of which forms."""
    return read_answers(path)[0]


class _Row(NamedTuple):
    """One series ``(time, dimensions)``, its label, and the number of its line."""

    values: NDArray[np.float64]
    label: str
    line: int


def read_answers(path: Path, *, labelled: bool = True, needed: bool = True) -> tuple[Series, bool]:
    """The time series of a file, and whether their labels are numbers rather than classes.

    They are where a ``.ts`` file says ``@targetlabel true``, and where all are numbers of which
    some are not whole.

    A line of a ``.ts`` file has any number of dimensions and then its class. One of a ``.tsv`` file
    has its class and then one dimension, between tabs, and one of a ``.csv`` file the same between
    commas. A first line of words names the columns, and so does one of the numbers from 0 or 1 on
    whose label is a word among numbers, or alone where each other occurs again; either way a
    warning says what a line that counts is taken for. A shorter series ends with ``NaN``, as in
    UCR's archive, or with nothing. Where no label is written at all, all are empty; one that is
    missing beside others is a mistake, and so is one that a ``.ts`` file does not list although it
    lists some. Lines of blanks are left out, and remarks: lines of a ``.ts`` file that begin with
    ``#`` or ``@``, and such lines of a table that have no column but one.

    Args:
        path: the file, plain or compressed.
        labelled: whether each series has its class; ``@classlabel false`` in a ``.ts`` file says so
            too.
        needed: whether the classes matter; if not, some may be missing.
    """
    if not path.is_file():
        packed = [name for end in (".gz", ".xz") if (name := Path(f"{path}{end}")).is_file()]
        hint = f"Did you mean {packed[0]}?" if packed else "Give a .tsv, .csv or .ts file."
        raise InputError(f"expected a file of time series, but there is no file {path}. {hint}")
    form = _form(path)
    try:
        # before its first tab, a line has its label, which may be missing
        spare = None if form in (".csv", ".ts") else " "
        lines = [line.strip(spare) for line in read_text(path).splitlines()]
        head = _head(lines) if form == ".ts" else {}
        labelled = labelled and head.get("@classlabel", ["true"])[0].lower() != "false"
        rows = _parsed(lines, form, labelled, path)
        if labelled and needed:
            _expect_labels(rows)
            _expect_listed(rows, head.get("@classlabel", [])[1:])
        found = _padded(rows)
        target = head.get("@targetlabel", ["false"])[0].lower() == "true"
        real = labelled and (target or _fractions(found.y))
        return (found if labelled else found._replace(y=[])), real
    except UnicodeDecodeError as error:
        raise InputError(
            f"expected text in UTF-8 in {path}, but got: {error}. If it is a table, save it as CSV "
            "in UTF-8."
        ) from error
    except (ValueError, EOFError, OSError, lzma.LZMAError) as error:
        raise InputError(
            f"expected time series in {path}, one a line, but got: {error}. Try a label and then "
            "numbers in each line (.tsv with tabs, .csv with commas), or a .ts file."
        ) from error


def _form(path: Path) -> str:
    """The ending of a file, below that of its packing."""
    packed = path.suffix.lower() in (".gz", ".xz")
    return (path.with_suffix("") if packed else path).suffix.lower()


def _head(lines: list[str]) -> dict[str, list[str]]:
    """What the first lines of a ``.ts`` file say, by their names; a name alone says nothing."""
    words = [line.split() for line in lines if line.startswith("@")]
    return {name.lower(): values for name, *values in words if values}


class _Line(NamedTuple):
    """One line of a table, as it is written."""

    label: str
    values: list[str]
    place: int


def _parsed(lines: list[str], form: str, labelled: bool, path: Path) -> list[_Row]:
    """Each series with its label; what is wrong with a line is told with its number."""
    first: _Line | None = None
    rows: list[_Row] = []
    for place, line in enumerate(lines, 1):
        if not line.strip() or _is_remark(line, form):
            continue
        with _at(place):
            if form == ".ts":
                rows.append(_Row(*_parse_ts(line, labelled), place))
                continue
            label, values = _split(line, form, labelled)
            if first is None:
                first = _Line(label, values, place)
                if labelled:
                    _expect_label_first(first)
            else:  # at once, since numbers take a tenth of the memory of words
                rows.append(_Row(_column(values), label, place))
    if first and not _names_columns(first, [row.label for row in rows], labelled, path):
        with _at(first.place):
            rows.insert(0, _Row(_column(first.values), first.label, first.place))
    return rows


def _is_remark(line: str, form: str) -> bool:
    """Whether a line is no series: in a table, a label may begin as a remark does."""
    return line[0] in "#@" and (form == ".ts" or ("," if form == ".csv" else "\t") not in line)


@contextmanager
def _at(place: int) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{error} (line {place})") from error


def _split(line: str, form: str, labelled: bool) -> tuple[str, list[str]]:
    """The label and the values of a line of a table."""
    cells = next(csv.reader([line])) if form == ".csv" else line.split("\t")
    label, *values = cells if labelled else ["", *cells]
    if not values:
        raise ValueError(f"a line without {'commas' if form == '.csv' else 'tabs'}")
    return label.strip(), [value.strip() for value in values]


def _names_columns(first: _Line, others: list[str], labelled: bool, path: Path) -> bool:
    """Whether the first line, beside the labels of others, names columns and is no series.

    It does where none of its values is a number. Where they count from 0 or 1, as pandas names
    columns, it does if its label cannot be that of a series like the others; either is said.
    """
    if not any(map(_number, first.values)):
        return True
    if len(first.values) + labelled < 3 or not _counts(first.values):
        return False
    named = _apart(first.label, others) if labelled else bool(others)
    logger.warning(
        "line %d of %s counts and is taken for %s; if it is not, %s",
        first.place,
        path,
        *(
            ("the names of columns", "put a line of names before it")
            if named
            else ("a series", "leave it out")
        ),
    )
    return named


def _expect_label_first(names: _Line) -> None:
    """Refuse a table in which another column is named as that of the labels, which come first.

    So it is where places come before them, as pandas writes them; ``y`` may be a value, but last.
    """
    for place, name in enumerate(names.values, 2):
        last = place == len(names.values) + 1
        named = name.lower() in LABELS and (last or name.lower() != "y")
        if named and names.label.lower() not in LABELS:
            raise ValueError(
                f"{name!r} as the name of {'the last column' if last else f'column {place}'}, "
                "where labels come first"
            )


def _counts(values: list[str]) -> bool:
    return any(values == [str(start + place) for place in range(len(values))] for start in (0, 1))


def _apart(label: str, others: list[str]) -> bool:
    """Whether a label is of no class: a word among numbers, or alone where no other is."""
    if _numbers(others) and not _numbers([label]):
        return True
    return label not in others and min(Counter(others).values(), default=0) > 1


def _expect_labels(rows: list[_Row]) -> None:
    """Refuse a label that is missing beside others, as among numbers NaN is."""
    labels = [row.label for row in rows]
    if not any(labels):
        return
    for place, label in enumerate(labels):
        if not label:
            raise ValueError(f"a series without a label (line {rows[place].line})")
    for place, number in enumerate(_numbers(labels)):
        if not math.isfinite(number):
            raise ValueError(
                f"the label {labels[place]}, which is no finite number (line {rows[place].line})"
            )


def _expect_listed(rows: list[_Row], listed: list[str]) -> None:
    """Refuse a label that a file does not list although it lists some, however it is written."""
    numbers = {*_numbers(listed)}
    for row in rows if listed else []:
        if row.label not in ("", "?", *listed) and not numbers.intersection(_numbers([row.label])):
            raise ValueError(
                f"the label {row.label}, which is not among those of @classLabel "
                f"({', '.join(listed)}) (line {row.line})"
            )


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return not text.strip()  # a value that is missing
    return True


def _column(values: list[str]) -> NDArray[np.float64]:
    """One dimension, without what fills a table up behind its end."""
    ends = [place for place, value in enumerate(values, 1) if value.strip().lower() not in _FILL]
    if not ends:
        raise ValueError("a series without values")
    return _floats([value.strip() or "nan" for value in values[: ends[-1]]])[:, None]


def _floats(texts: list[str]) -> NDArray[np.float64]:
    """Numbers, of which some may be missing (NaN) but none is too large for a network."""
    found = np.array(texts, np.float64)
    if (beyond := np.abs(found) > np.finfo(np.float32).max).any():
        text = texts[int(beyond.argmax())].strip()
        raise ValueError(f"the value {text}, which is infinite in single precision")
    return found


def _parse_ts(line: str, labelled: bool) -> tuple[NDArray[np.float64], str]:
    *dimensions, label = line.split(":") if labelled else [*line.split(":"), ""]
    if not dimensions:
        raise ValueError("a line without colons")
    if dimensions[0].lstrip().startswith("("):
        raise ValueError("times beside values, as @timestamps true has them, not values alone")
    values = [_floats([v.replace("?", "nan") for v in one.split(",")]) for one in dimensions]
    if len({len(one) for one in values}) > 1:
        raise ValueError(f"dimensions of {len(values[0])} and of other numbers of values")
    return np.stack(values, 1), label.strip()


def _fractions(labels: list[str]) -> bool:
    """Whether labels are numbers of which some are not whole."""
    return any(not number.is_integer() for number in _numbers(labels))


def _numbers(labels: list[str]) -> list[float]:
    """Labels as numbers; none, where some are words."""
    try:
        return [float(label) for label in labels]
    except ValueError:
        return []


def _padded(rows: list[_Row]) -> Series:
    if not rows:
        raise ValueError("no series at all")
    dimensions = sorted({row.values.shape[1] for row in rows})
    if len(dimensions) > 1:
        raise ValueError(f"series of {dimensions[0]} and of {dimensions[1]} dimensions")
    lengths = np.array([len(row.values) for row in rows])
    x = np.zeros((len(rows), lengths.max(), dimensions[0]))
    for place, row in enumerate(rows):
        x[place, : len(row.values)] = row.values
    if (missing := np.isnan(x).any((1, 2))).any():
        raise ValueError(f"missing values (NaN) in series {int(missing.argmax())}, before its end")
    ragged = lengths.min() < lengths.max()
    return Series(x, lengths if ragged else None, [row.label for row in rows])
