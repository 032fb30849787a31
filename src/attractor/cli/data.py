"""``attractor data``: the data sets, where they are, and getting them."""

import json
from pathlib import Path
from typing import Annotated

import typer

from attractor.cli.run import DATA_HELP

app = typer.Typer(
    help="List, fetch and verify data sets.",
    epilog="Example: attractor data fetch mnist",
    no_args_is_help=True,
)

Name = Annotated[list[str] | None, typer.Argument(help="Data sets; all, if left out.")]
Root = Annotated[Path | None, typer.Option("--data", help=DATA_HELP, show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print as JSON.")]


@app.command("list", epilog="Example: attractor data list")
def list_(data: Root = None, as_json: AsJson = False) -> None:
    """List data sets, and whether they are here."""
    from attractor.cli.tables import table
    from attractor.tasks.data import DATASETS, data_root, verify

    rows = []
    for name, dataset in DATASETS.items():
        states = [status.state for status in verify(name, data)]
        here = f"{len(states) - states.count('missing')} of {len(states)} files"
        rows.append({"name": name, "here": here, "licence": dataset.licence, "what": dataset.title})
    if as_json:
        typer.echo(json.dumps({"root": str(data_root(data)), "datasets": rows}, indent=1))
        return
    typer.echo(f"data root: {data_root(data)}")
    table(list(rows[0]), [list(row.values()) for row in rows])


@app.command(epilog="Example: attractor data fetch mnist")
def fetch(
    names: Annotated[list[str], typer.Argument(help="Data sets.")],
    data: Root = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Download data sets from their official addresses.

    A download that was stopped resumes; each file is verified.
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    from attractor.tasks.data import data_root
    from attractor.tasks.data import fetch as fetch_data

    console = Console(stderr=True)
    title = TextColumn("{task.description}", markup=False)
    columns = (title, BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal) as bars:
        tasks: dict[str, int] = {}

        def show(path: str, done: int, total: int | None) -> None:
            if path not in tasks:
                if not quiet and not console.is_terminal:
                    console.print(f"fetching {path}", highlight=False, markup=False)
                tasks[path] = bars.add_task(Path(path).name, total=total)
            bars.update(tasks[path], completed=done, total=total)  # type: ignore[arg-type]

        for name in names:
            fetched = fetch_data(name, data, progress=show)
            for path in fetched:
                typer.echo(str(path))
            if not fetched and not quiet:
                console.print(
                    f"{name}: already in {data_root(data)}", highlight=False, markup=False
                )


@app.command(epilog="Example: attractor data verify mnist")
def verify(names: Name = None, data: Root = None, as_json: AsJson = False) -> None:
    """Check files against their published sums.

    The exit code is 1 if one is missing or corrupt.
    """
    from attractor.cli.tables import table
    from attractor.tasks.data import DATASETS
    from attractor.tasks.data import verify as verify_data

    rows = []
    for name in names or list(DATASETS):
        for status in verify_data(name, data):
            row = {"data set": name, "part": status.part, "state": status.state}
            rows.append(row | {"detail": status.detail, "path": str(status.path)})
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
    else:
        table(list(rows[0]), [list(row.values()) for row in rows])
    if any(row["state"] in ("missing", "corrupt") for row in rows):
        raise typer.Exit(1)
