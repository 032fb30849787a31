"""A table of text, for a terminal or a page."""

from typing import NamedTuple

MISSING = "–"


class Table(NamedTuple):
    """A heading, the names of columns, and rows of as many cells."""

    title: str
    columns: list[str]
    rows: list[list[str]]
