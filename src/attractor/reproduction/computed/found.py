"""What a computation finds: numbers that no run has to be made for."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple


class Found(NamedTuple):
    """A number: the row and the column of a document, or what a claim calls its own.

    ``seed`` is that of a simulation; without one the number is exact. The unit is that of a
    measure of ours: shares, not percent.
    """

    row: str
    column: str
    value: float
    seed: int | None = None


Computation = Callable[[Path | None], Iterable[Found]]
"""From the data root to numbers."""
