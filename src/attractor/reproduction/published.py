"""The numbers that the documents print: data, beside which ours are shown."""

import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

QUOTED = "(quoted)"

DOCUMENTS = {
    "000": "Kuo (2021)",
    "001": "Chandar (2020)",
    "002": "DecayNet (2018)",
    "003": "IRC (2020)",
    "004": "MTL2L (2020)",
}
"""By its number, how a document is called on pages."""


class Number(NamedTuple):
    """A number as it is printed, in its unit; ``spread`` is what follows its plus-minus sign.

    ``digits`` are those after the point, where they are not as many as its column has at most.
    """

    target: str
    place: str
    row: str
    column: str
    value: float
    unit: str
    better: str
    lines: str
    spread: float | None = None
    digits: int | None = None

    @property
    def quoted(self) -> bool:
        """Whether the document took it from another paper: context, no verdict."""
        return QUOTED in self.row

    @property
    def scale(self) -> float:
        """What a measure of ours is multiplied by to be in this unit."""
        return 100.0 if self.unit in ("%", "points") else 1.0

    @property
    def rounding(self) -> float:
        """Half a unit of the last digit that is printed: of its own, or as in its column.

        Example:
            >>> of_target("000/table-6.1")[2].value, of_target("000/table-6.1")[2].rounding
            (80.6, 0.005)
        """
        column = [one.value for one in of_target(self.target) if one.column == self.column]
        last = max(_digits(value) for value in column or [self.value])
        return 0.5 * 10.0 ** -(last if self.digits is None else self.digits)


def _digits(value: float) -> int:
    """After the point."""
    return len(repr(value).partition(".")[2]) if value % 1 else 0


@cache
def numbers() -> tuple[Number, ...]:
    """All of them, in the order of the file."""
    text = Path(__file__).with_name("numbers.toml").read_text(encoding="utf-8")
    return tuple(
        Number(place["target"], place["place"], **one)
        for place in tomllib.loads(text)["place"]
        for one in place["numbers"]
    )


def of_target(key: str) -> list[Number]:
    """The numbers of one target, such as ``000/table-6.1``.

    Example:
        >>> [one.value for one in of_target("000/table-6.1") if one.row == "ER"]
        [80.6, 69.42]
    """
    return [one for one in numbers() if one.target == key]


class Published(NamedTuple):
    """A published number beside the variant and the measure that are to give it."""

    experiment: str
    label: str
    measure: str
    number: Number


def published(experiment: str) -> list[Published]:
    """The published numbers that runs of an experiment are meant to end with.

    Example:
        >>> [one.number.value for one in published("m2sgd-table-5.1") if one.label == "MetaSGD"]
        [85.06]
    """
    from attractor.reproduction.targets import TARGETS

    return [
        Published(experiment, source.label(number.row), source.columns[number.column], number)
        for target in TARGETS.values()
        for source in target.sources
        if source.full == experiment
        for number in of_target(target.key)
        if source.has(number) and source.ends(number.column)
    ]
