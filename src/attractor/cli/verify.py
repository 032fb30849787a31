"""``attractor verify``: repeat runs, and compare them bit for bit."""

from pathlib import Path
from typing import Annotated

import typer

from attractor.cli.run import DATA_HELP, TRUST_HELP
from attractor.cli.text import visible, warn


def verify(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished runs.")],
    data: Annotated[Path | None, typer.Option(help=DATA_HELP, show_default=False)] = None,
    trust: Annotated[bool, typer.Option("--trust", help=TRUST_HELP)] = False,
) -> None:
    """Repeat runs, and compare all their numbers bit for bit.

    The runs themselves stay as they are: it repeats them in a temporary folder.
    """
    from attractor.experiments.repeat import verify as repeated

    different = False
    for folder in runs:
        found = repeated(folder, data=data, trust=trust)
        for one in found.elsewhere:
            warn(f"{folder.name} ran elsewhere: {one}")
        if found.same:
            typer.echo(f"{folder}: the same, bit for bit ({found.lines} lines)")
        else:
            typer.echo(visible(f"{folder}: different: {found.difference}"))
        different |= not found.same
    raise typer.Exit(1 if different else 0)
