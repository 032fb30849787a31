"""``attractor figure``: a figure of the papers, drawn anew."""

from pathlib import Path
from typing import Annotated

import typer


def figure(
    name: Annotated[str | None, typer.Argument(help="Which; all are listed without one.")] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="An .svg, .png or .pdf to write.")
    ] = Path("figure.svg"),
) -> None:
    """Draw a figure of the papers anew.

    Without a name, list those that can be drawn.
    """
    from attractor.report.papers import draw, listed

    if name is None:
        from attractor.cli.tables import table

        table(["figure", "what it shows"], [*listed().items()])
        return
    from attractor.dynamics.plots import check_format, save

    check_format(out)
    save(draw(name), out)
    typer.echo(str(out))
