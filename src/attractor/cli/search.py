"""The search that ``attractor sweep --trials`` does: its progress, and what it tells at the end."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from attractor.cli.run import exit_code
from attractor.cli.text import visible, warn
from attractor.errors import InputError

if TYPE_CHECKING:
    from attractor.cli.progress import Followed
    from attractor.experiments.search import Begun, Found, Search
    from attractor.experiments.trials import Trial
    from attractor.runs.engines import Places
    from attractor.runs.jobs import Ended


def refuse_with_trials(options: Sequence[str], name: str, out: Path) -> None:
    """Say of options that a search cannot follow what to do in their place."""
    instead = {
        "--dry-run": "where a search looks follows from what it finds. Leave one out",
        "--track": f"Try `attractor track {out / Path(name).stem}` after it",
        "--report": f"Try `attractor report {out / Path(name).stem}` after it",
        "--retry": "a search does not go back to points that failed. Leave --retry out",
    }
    for option in options:
        raise InputError(f"expected {option} without --trials, but got both: {instead[option]}.")


def searched(what: "Search", trials: int, places: "Places", *, quiet: bool, as_json: bool) -> int:
    """Do a search, show how it goes and what it found; the exit code of the command."""
    from attractor.cli.progress import Watch
    from attractor.experiments.search import begun, search

    endings: list[Ended[Trial | None]] = []
    look = begun(what)
    if trials > what.space.size:
        trials = what.space.size
        warn(f"there are no more than {trials} points to try, and each is tried once.")

    def find() -> "dict[str, Followed]":
        return {str(one.trial.number): _followed(what, one) for one in look()}

    with Watch((), what.out, quiet=quiet, trials=trials, find=find) as watch:

        def on_trial(count: int, ended: "Ended[Trial | None]") -> None:
            endings.append(ended)
            trial = ended.config
            name = "a trial" if trial is None else what.named(trial)
            key = name if trial is None else str(trial.number)
            value = None if trial is None else trial.value
            told = "" if value is None else f", valid {what.measure} {value:.5g}"
            watch.close(key, name, ended.how, told, count)

        found = search(what, trials, places=places, on_trial=on_trial)
    for message in dict.fromkeys(one.message for one in endings if one.message):
        warn(message)
    if as_json:
        typer.echo(json.dumps([_as_row(found, one) for one in found.trials], indent=1))
    else:
        _tell(what.name, found, what.only, what.changes)
    return _search_code(found, [one.how for one in endings])


def _followed(what: "Search", one: "Begun") -> "Followed":
    """A trial that is under way, as progress is told of it."""
    from attractor.cli.progress import Followed
    from attractor.experiments.train import run_folder
    from attractor.runs.folder import LOG_FILE

    logs = tuple(run_folder(what.out, run) / LOG_FILE for run in one.runs)
    return Followed(visible(what.named(one.trial)), logs, one.runs[0].total)


def _search_code(found: "Found", endings: Sequence[str]) -> int:
    """Of the command: a search whose trials all failed has found nothing."""
    if "stopped" in endings:
        warn("stopped; what was on its way is saved and goes on with the same command.")
        return exit_code(["stopped"])
    if found.best is None:
        warn(
            f"expected a trial with a {found.measure}, but none of {len(found.trials)} has one. "
            "Try other values, or more --trials."
        )
        return exit_code(["failed"])
    return 0


def _as_row(found: "Found", trial: "Trial") -> dict[str, object]:
    """A trial of a search for machines to read."""
    settings = dict(zip(found.keys, trial.values, strict=True))
    return {
        "trial": trial.number,
        "measure": found.measure,
        "value": trial.value,
        "settings": settings,
        "status": trial.status,
    }


def _tell(name: str, found: "Found", only: Sequence[str], changes: Sequence[str]) -> None:
    """Print what was tried, the best first, and how to run the best."""
    from attractor.cli.tables import table

    rows = [
        [str(one.number), "-" if one.value is None else f"{one.value:.5g}", *one.values, one.status]
        for one in found.trials
    ]
    table(["trial", found.measure, *found.keys, "status"], rows, right=(0, 1))
    if found.best is not None:
        best = map("=".join, zip(found.keys, found.best.values, strict=True))
        words = ["attractor", "run", name]
        words += [word for label in only for word in ("--only", label)]
        words += [word for change in (*changes, *best) for word in ("--set", change)]
        typer.echo(f"best by {found.measure}: {shlex.join(words)}")
