"""``attractor sweep``: an experiment at every point of a grid, or where a search looks."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from attractor.cli.run import DATA_HELP, exit_code, explain, seeds_of, show
from attractor.cli.search import refuse_with_trials, searched
from attractor.cli.text import warn
from attractor.cli.track import TRACK_HELP, following
from attractor.errors import InputError


def sweep(
    name: Annotated[str, typer.Argument(help="An experiment, or its file.")],
    grid: Annotated[
        list[str] | None,
        typer.Option(help="Values of a key: a.b=1,2,3; low..high or low..high:log in a search."),
    ] = None,
    change: Annotated[
        list[str] | None, typer.Option("--set", help="Change a value: a.b=c; may be repeated.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Only the variant with this label; may be repeated.")
    ] = None,
    seed: Annotated[
        list[str] | None,
        typer.Option("--seed", "--seeds", help="Not the file's seeds, but 3, 0-9 or 0,2,5."),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Search by Optuna: so many points, not all of them.")
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(help="What a search goes by, on validation data; by default loss."),
    ] = None,
    engine: Annotated[str, typer.Option(help="Where: local, ray or slurm.")] = "local",
    address: Annotated[
        str | None, typer.Option(help="Of the Ray cluster, such as auto.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the runs.")] = Path("runs"),
    data: Annotated[Path | None, typer.Option(help=DATA_HELP, show_default=False)] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Runs at a time; by default all cores."),
    ] = None,
    retry: Annotated[bool, typer.Option(help="Try runs again that failed.")] = False,
    report: Annotated[Path | None, typer.Option(help="Also write a report to this file.")] = None,
    track: Annotated[list[str] | None, typer.Option(help=TRACK_HELP)] = None,
    dry_run: Annotated[bool, typer.Option(help="Show and check the runs, do none.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Run an experiment at every point of a grid. Finished runs are not repeated."""
    from attractor.cli.progress import Watch
    from attractor.experiments.check import refusals
    from attractor.experiments.grid import sweep_runs
    from attractor.experiments.space import Space, listed
    from attractor.experiments.train import run_all, run_folder
    from attractor.files import check_target
    from attractor.runs.engines import Places
    from attractor.runs.memory import keep_memory

    keep_memory()
    if report is not None:
        check_target(report, "--report")
    seeds = seeds_of(seed)
    changes = [*(change or []), *([f"seeds={seeds}"] if seeds else [])]
    places = Places(engine, jobs, address)
    places.check()
    if trials is not None:
        given = {"--dry-run": dry_run, "--track": track, "--report": report, "--retry": retry}
        refuse_with_trials([option for option, value in given.items() if value], name, out)
        from attractor.experiments.search import Search

        what = Search.of(
            name,
            Space.read(grid or []),
            changes=changes,
            only=only or [],
            measure=measure or "loss",
            out=out,
            data=data,
        )
        raise typer.Exit(searched(what, trials, places, quiet=quiet, as_json=as_json))
    if measure is not None:
        raise InputError(
            f"expected --measure beside --trials, but got --measure {measure} alone: a grid is not "
            "searched. Leave it out, or try --trials 20."
        )
    configs = sweep_runs(name, listed(grid or []), changes, only or [])
    if dry_run:
        for config in configs:
            typer.echo(str(run_folder(out, config)))
        reasons = Counter(refusals(configs, data).values())
        for why, count in reasons.items():
            warn(f"{count} of {len(configs)} runs would be refused: {why}")
        raise typer.Exit(2 if reasons else 0)
    every = [run_folder(out, config) for config in configs]
    with following(track, every, out), Watch(configs, out, quiet=quiet) as watch:
        ended = run_all(
            configs,
            out,
            data=data,
            places=places,
            retry=retry,
            keep_refused=True,
            on_end=watch.end,
        )
    explain(ended)
    folders = [
        run_folder(out, one.config) for one in ended if one.how in ("done", "failed", "refused")
    ]
    if folders and not any(one.how == "stopped" for one in ended):
        show(folders, report, as_json)
    raise typer.Exit(exit_code([one.how for one in ended]))
