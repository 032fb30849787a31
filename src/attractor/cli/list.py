"""``attractor list``: what there is."""

import json
from enum import StrEnum
from typing import Annotated

import typer


class Kind(StrEnum):
    """What can be listed."""

    cells = "cells"
    tasks = "tasks"
    experiments = "experiments"


def list_(
    kind: Annotated[Kind | None, typer.Argument(help="What to list; all, if left out.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List cells, tasks or experiments."""
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
        if name == "cells":
            typer.echo("sizes are for 128 inputs and 128 units")
        columns = list(rows[0])
        numbers = [i for i, column in enumerate(columns) if column in ("parameters", "runs")]
        table(columns, [[_text(value) for value in row.values()] for row in rows], right=numbers)


def _text(value: object) -> str:
    # years have no thousands
    return f"{value:,}" if isinstance(value, int) and value > 9999 else str(value)
