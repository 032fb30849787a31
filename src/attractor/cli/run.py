"""``attractor run``: do an experiment, or what is left of it."""

import json
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from attractor.cli.ignored import refuse_ignored
from attractor.cli.text import warn
from attractor.cli.track import TRACK_HELP, following
from attractor.errors import InputError, unknown

DATA_HELP = "Data root; by default $ATTRACTOR_DATA, else the platform's cache folder."
TRUST_HELP = (
    "Import and call code that a run's own file names as module:Class. That code may do anything: "
    "only for runs of people whom you trust."
)
MOST_SEEDS = 10_000
DRY = {"name", "change", "only", "seed", "out", "data", "device", "jobs", "dry_run", "quiet"}
"""The options that may stand beside ``--dry-run``: all that say what is run, and how."""


def run(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(help="An experiment (attractor list experiments), its file, or a run's."),
    ],
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
    out: Annotated[Path, typer.Option(help="Folder for the runs.")] = Path("runs"),
    data: Annotated[Path | None, typer.Option(help=DATA_HELP, show_default=False)] = None,
    device: Annotated[str | None, typer.Option(help="Device, such as cpu or cuda.")] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Runs at a time; by default all cores."),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a report to this file.")] = None,
    track: Annotated[list[str] | None, typer.Option(help=TRACK_HELP)] = None,
    wait: Annotated[bool, typer.Option(help="Wait for runs that another process has.")] = False,
    force: Annotated[
        bool, typer.Option(help="Do finished runs again; go on if that was stopped.")
    ] = False,
    dry_run: Annotated[bool, typer.Option(help="Show the runs, do none.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Run an experiment: every variant from every seed. Finished runs are not repeated."""
    from attractor.cli.progress import Watch
    from attractor.experiments.train import run_all, run_folder
    from attractor.files import check_target
    from attractor.runs.engines import Places
    from attractor.runs.memory import keep_memory
    from attractor.team import joined

    keep_memory()
    changes = [*(change or []), *([f"train.device={device}"] if device else [])]
    configs = _configs(name, changes, only or [], seeds_of(seed))
    if dry_run:
        refuse_ignored(context, "--dry-run", DRY)
        for config in configs:
            typer.echo(str(run_folder(out, config)))
        return
    if report is not None:
        check_target(report, "--report")
    every = [run_folder(out, config) for config in configs]
    with (
        joined() as (rank, size),
        following([] if rank else track, every, out),
        Watch(configs, out, quiet=quiet or rank > 0) as watch,
    ):
        if size > 1:
            _expect_one(configs, size)
        ended = run_all(
            configs,
            out,
            data=data,
            places=Places(jobs=jobs if size == 1 else 1),
            wait=wait,
            force=force,
            on_end=watch.end,
        )
    if rank:
        raise typer.Exit(exit_code([one.how for one in ended]))
    explain(ended)
    folders = [run_folder(out, one.config) for one in ended if one.how in ("done", "failed")]
    if folders and not any(one.how == "stopped" for one in ended):
        show(folders, report, as_json)
    raise typer.Exit(exit_code([one.how for one in ended]))


def parse_seeds(text: str) -> list[int]:
    """Seeds and ranges of seeds, with commas between them.

    Example:
        >>> parse_seeds("0-2,7")
        [0, 1, 2, 7]
    """
    seeds: set[int] = set()
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last or last - first >= MOST_SEEDS:
            raise InputError(
                f"expected seeds such as 3, 0-9 or 0,2,5, at most {MOST_SEEDS:,} of them, "
                f"but got {part!r}. Try --seeds 0-9."
            )
        seeds.update(range(first, last + 1))
    return sorted(seeds)


def seeds_of(given: list[str] | None) -> list[int]:
    """The seeds that options name together; none if there is no such option.

    Example:
        >>> seeds_of(["4", "0-1"]), seeds_of(None)
        ([0, 1, 4], [])
    """
    text = ",".join(given or [])
    found = parse_seeds(text)
    if given is not None and not found:
        raise InputError(
            f"expected seeds such as 3, 0-9 or 0,2,5, but got {text!r}. Try --seeds 0-9."
        )
    return found


def _configs(name: str, changes: list[str], only: list[str], seeds: list[int]) -> list[Any]:
    """The runs of an experiment, or the one whose file is named."""
    from attractor.experiments.repeat import read_run
    from attractor.experiments.table import load
    from attractor.experiments.train import runs_of

    # whoever names a file to be run says that it is to be run, with what it names
    single = read_run(Path(name), changes, trust=True) if name.endswith(".toml") else None
    if single is None:
        title, experiment = load(name, [*changes, *([f"seeds={seeds}"] if seeds else [])])
        return list(runs_of(title, experiment, only))
    if only and single.label not in only:
        raise unknown("variant of this run", only[0], [single.label])
    return [single.model_copy(update={"seed": seed}) for seed in seeds or [single.seed]]


def _expect_one(configs: list[Any], size: int) -> None:
    """Refuse what a team of processes cannot share."""
    if len(configs) > 1:
        raise InputError(
            f"expected one run for the {size} processes of torchrun to share, but got "
            f"{len(configs)}. Choose it by --only and --seed."
        )
    if configs[0].kind != "supervised":
        raise InputError(
            f"expected a run of kind supervised for the {size} processes of torchrun to share, "
            f"but got one of kind {configs[0].kind}. Start it without torchrun."
        )


def explain(ended: list[Any]) -> None:
    """One sentence for each thing that went wrong, however many runs it stopped."""
    for message in dict.fromkeys(one.message for one in ended if one.message):
        warn(message)
    stopped = sum(one.how == "stopped" for one in ended)
    if stopped:
        warn(f"stopped; {stopped} of {len(ended)} runs are saved and go on with the same command.")


def exit_code(endings: list[str]) -> int:
    """Of the command, from how its runs ended."""
    for how, code in (("stopped", 130), ("refused", 2), ("failed", 1), ("busy", 1)):
        if how in endings:
            return code
    return 0


def show(folders: list[Path], report: Path | None, as_json: bool) -> None:
    """Print what runs came to, and write a report of them if that was asked."""
    from attractor.cli.tables import results_table
    from attractor.results import summary
    from attractor.runs.environment import mixed
    from attractor.runs.read import read_runs

    runs, damaged = read_runs(folders)
    for one in damaged:
        warn(f"{one.folder} is damaged and left out: {one.reason}")
    if said := mixed(run.environment for run in runs):
        warn(said)
    if as_json:
        rows = [
            {"folder": str(r.folder), "label": r.label, "seed": r.seed, "status": r.status}
            | {"outcome": r.outcome}
            for r in runs
        ]
        typer.echo(json.dumps(rows, indent=1))
    else:
        results_table(summary(runs))
    if report is not None:
        from attractor.report import build, write

        write(build(runs, damaged=damaged), report)
        print(f"report: {report}", file=sys.stderr if as_json else sys.stdout)
