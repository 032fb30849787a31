"""A table of text, for a terminal or a page."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

MISSING = "–"


class Table(NamedTuple):
    """A heading, the names of columns, and rows of as many cells."""

    title: str
    columns: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """The table for a page of documentation: names on the left, numbers on the right.

        Example:
            >>> print(Table("speeds", ["cell", "here"], [["gru", "1.5"]]).markdown())
            Speeds.
            <BLANKLINE>
            | cell | here |
            | --- | ---: |
            | `gru` | 1.5 |
        """
        rows = [[f"`{row[0]}`", *row[1:]] for row in self.rows]
        lines = markdown(self.columns, rows, right=range(1, len(self.columns)))
        return f"{self.title[0].upper()}{self.title[1:]}.\n\n{lines}"


def markdown(
    columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()
) -> str:
    """Columns and rows in Markdown; numbers of the columns in ``right`` stand on the right."""
    lines = [_line(columns)]
    lines.append(_line("---:" if place in right else "---" for place in range(len(columns))))
    lines += [_line(row) for row in rows]
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
