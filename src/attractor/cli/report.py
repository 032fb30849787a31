"""``attractor report``: saved runs as one HTML page."""

from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from attractor.cli.ignored import refuse_ignored
from attractor.cli.run import DATA_HELP, TRUST_HELP


def report(
    context: typer.Context,
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders, folders of runs, and files of benchmarks.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
    title: Annotated[str | None, typer.Option(help="Its heading.")] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Serve it here, and refresh it while runs go on.")
    ] = False,
    inside: Annotated[
        bool,
        typer.Option("--inside", help="Look into a network of each variant, too; images it made."),
    ] = False,
    data: Annotated[Path | None, typer.Option(help=DATA_HELP, show_default=False)] = None,
    trust: Annotated[bool, typer.Option("--trust", help=f"With --inside: {TRUST_HELP}")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="With --watch: 0 for any.")] = 8420,
) -> None:
    """Write one self-contained page about saved runs, or serve it.

    It is served to this machine alone, and refreshed while runs go on.
    """
    if watch:
        refuse_ignored(context, "--watch", {"runs", "title", "watch", "port"})
        _watch(runs, title, port)
        return
    takes = {"runs", "out", "title", "inside"}
    if inside:
        refuse_ignored(context, "a page", takes | {"data", "trust"})
    else:
        refuse_ignored(context, "a page without --inside", takes)
    from attractor.cli.text import warn
    from attractor.report import build, write
    from attractor.results.benchmark import load
    from attractor.runs.read import read_runs

    benchmarks = [load(path) for path in runs if path.suffix == ".json"]
    folders = [path for path in runs if path.suffix != ".json"]
    whole, damaged = read_runs(folders) if folders else ([], [])
    for one in damaged:
        warn(f"{one.folder} is damaged and left out: {one.reason}")
    seen = None
    if inside:
        from attractor.report.inside import looked_into

        seen = looked_into(whole, data, trust=trust)
        for look in chain(*seen.values()):
            if look.note:
                warn(f"{look.label}, seed {look.seed}: {look.note}")
    write(build(whole, title, damaged, benchmarks=benchmarks, inside=seen), out)
    typer.echo(str(out))


def _watch(runs: list[Path], title: str | None, port: int) -> None:
    from attractor.report.watch import Page, server

    with server(Page(runs, title), port) as serving:
        host, chosen = serving.server_address[:2]
        typer.echo(f"http://{host!s}:{chosen}/ (Ctrl-C ends it)")
        serving.serve_forever(poll_interval=0.2)
