"""``attractor list``: what there is."""

import json
from enum import StrEnum
from textwrap import fill, indent
from typing import Annotated

import typer

SIZES = {
    "cells": "sizes are for 128 inputs and 128 units",
    "optimisers": "weights are those for a network of 25,450 parameters (784-32-10)",
}
COUNTS = ("parameters", "weights", "runs")


class Listed(StrEnum):
    """What can be listed."""

    cells = "cells"
    models = "models"
    optimisers = "optimisers"
    strategies = "strategies"
    streams = "streams"
    tasks = "tasks"
    experiments = "experiments"


def list_(
    kind: Annotated[Listed | None, typer.Argument(help="What to list; all, if left out.")] = None,
    name: Annotated[str | None, typer.Argument(help="One of these, with its options.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List what there is, or show the options of one.

    Cells, models, optimisers, strategies, streams, tasks and experiments.
    """
    from attractor.cli import catalogue
    from attractor.cli.tables import table

    if kind and name:
        _tell(kind, name, as_json)
        return
    kinds = [kind] if kind else list(Listed)
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


def _tell(kind: Listed, name: str, as_json: bool) -> None:
    """What one entry is, its options, its paper and an example."""
    from attractor.cli.entry import entry
    from attractor.cli.tables import PIPE, table

    found = entry(kind, name)
    if as_json:
        typer.echo(json.dumps(found, indent=1))
        return
    typer.echo(f"{found['key']}: {found['what']}\n")
    if said := found.get("description"):
        typer.echo(f"{_wrapped(said)}\n")
    if found["options"]:
        rows = [list(option.values()) for option in found["options"]]
        table(list(found["options"][0]), rows, most=PIPE)
    if "reference" in found:
        typer.echo(f"{_wrapped('reference: ' + (found['reference'] or 'none'))}\n")
    typer.echo(f"example:\n{indent(found['example'], '    ')}")


def _wrapped(text: str) -> str:
    return fill(text, 100, break_on_hyphens=False, break_long_words=False)


def _text(column: str, value: object) -> str:
    return f"{value:,}" if column in COUNTS else str(value)
