"""``attractor report``: saved runs as one HTML page."""

from pathlib import Path
from typing import Annotated

import typer


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders of runs.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
    title: Annotated[str | None, typer.Option(help="Its heading.")] = None,
) -> None:
    """Write one self-contained page about saved runs."""
    from attractor.cli.text import warn
    from attractor.report import build, write
    from attractor.runs.read import read_runs

    whole, damaged = read_runs(runs)
    for one in damaged:
        warn(f"{one.folder} is damaged and left out: {one.reason}")
    write(build(whole, title, damaged), out)
    typer.echo(str(out))
