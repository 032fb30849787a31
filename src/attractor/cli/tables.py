"""Tables on the terminal."""

import os
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from attractor.cli.text import visible

if TYPE_CHECKING:  # numpy, for which a table of names need not wait
    from attractor.results.summary import SummaryRow


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[int] = (),
    most: int = 10_000,
) -> None:
    """Print a table on stdout, in full even where the output is no terminal.

    Args:
        columns: their names.
        rows: as many cells each.
        right: the columns that are flush right.
        most: columns of text to write in where the output is no terminal; cells are wrapped.
    """
    console = Console()
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        made.add_column(
            _cell(column),
            justify="right" if index in right else "left",
            overflow="fold",
        )
    for row in rows:
        made.add_row(*map(_cell, row))
    if not console.is_terminal:
        console = Console(width=Console(width=most).measure(made).maximum)
    console.print(made)


PIPE = 100
"""The width of what is wrapped where the output is no terminal and COLUMNS says nothing."""

NARROWEST = 36
"""Columns of text that are still read at ease."""


def width() -> int:
    """How many columns there are to write in."""
    console = Console()
    return console.width if console.is_terminal or os.environ.get("COLUMNS") else PIPE


def hanging(
    columns: Sequence[str], rows: Sequence[Sequence[str]], wide: int, right: Sequence[int] = ()
) -> list[str]:
    """The lines of a table whose last column is text: it is wrapped beside the others, or below.

    Args:
        columns: their names.
        rows: as many cells each.
        wide: the width of the lines; the columns before the last are never broken.
        right: the columns that are flush right.
    """
    cells = [[visible(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(map(cell_len, column)) for column in list(zip(*cells, strict=True))[:-1]]
    heads = [
        "  ".join(
            cell.rjust(size) if place in right else cell.ljust(size)
            for place, (cell, size) in enumerate(zip(row, widths, strict=False))
        )
        for row in cells
    ]
    indent = sum(widths) + 2 * len(widths)
    below = wide - indent < NARROWEST
    lines = []
    for head, row in zip(heads, cells, strict=True):
        margin = " " * (2 if below else indent)
        text = textwrap.wrap(
            row[-1],
            wide,
            initial_indent=margin,
            subsequent_indent=margin,
            break_on_hyphens=False,
        )
        if below:
            lines += [head.rstrip(), *text]
        else:
            first = text[0].strip() if text else ""
            lines += [f"{head}  {first}".rstrip(), *text[1:]]
    return lines


def _cell(text: str) -> Text:
    """Text as it is: brackets are no markup, and escapes do nothing."""
    return Text(visible(text))


def results_table(rows: Sequence["SummaryRow"]) -> None:
    """The results of runs: one line for each model."""
    metric = rows[0].metric
    print(f"{visible(rows[0].budget)} budget")
    columns = ["model", metric.replace("_", " "), "95%", "seeds", "parameters", "seconds", "status"]
    solving = any("solved" in row.estimates for row in rows)
    columns += ["solved"] if solving else []
    lines = []
    for row in rows:
        found = row.estimate
        half = found.half_width if found else None
        lines.append(
            [
                row.label,
                _number(found.mean) if found else "-",
                f"± {_number(half)}" if half is not None else "-",
                str(row.n),
                f"{row.parameters:,}" if row.parameters else "-",
                f"{row.seconds:.1f}" if row.seconds is not None else "-",
                row.status,
                *([_solved(row)] if solving else []),
            ]
        )
    table(columns, lines, right=(1, 2, 3, 4, 5))


def _solved(row: "SummaryRow") -> str:
    """How many seeds got there; the others count in the mean with the steps they had."""
    found = row.estimates.get("solved")
    return f"{sum(found.values):.0f} of {found.n}" if found else "-"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4f}"
