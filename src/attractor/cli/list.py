"""``attractor list``: what there is."""

import json
from enum import StrEnum
from typing import Annotated

import typer

SIZES = {
    "cells": "sizes are for 128 inputs and 128 units",
    "optimisers": "weights are those for a network of 25,450 parameters (784-32-10)",
}
COUNTS = ("parameters", "weights", "runs")


class Kind(StrEnum):
    """What can be listed."""

    cells = "cells"
    optimisers = "optimisers"
    strategies = "strategies"
    streams = "streams"
    tasks = "tasks"
    experiments = "experiments"


def list_(
    kind: Annotated[Kind | None, typer.Argument(help="What to list; all, if left out.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List cells, optimisers, strategies, streams, tasks or experiments."""
    from attractor.cli import catalogue
    from attractor.cli.tables import table

    kinds = [kind] if kind else list(Kind)
    found = {str(one): getattr(catalogue, one)() for one in kinds}
    if as_json:
        typer.echo(json.dumps(found, indent=1))
        return
    for name, rows in found.items():
        if len(found) > 1:
            typer.echo(name)
        if name in SIZES:
            typer.echo(SIZES[name])
        columns = list(rows[0])
        numbers = [i for i, column in enumerate(columns) if column in COUNTS]
        table(columns, [[_text(*entry) for entry in row.items()] for row in rows], right=numbers)


def _text(column: str, value: object) -> str:
    return f"{value:,}" if column in COUNTS else str(value)
