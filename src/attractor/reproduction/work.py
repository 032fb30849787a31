"""What a target has to run, and what its runs came to."""

from collections.abc import Sequence
from pathlib import Path

from attractor.errors import InputError
from attractor.experiments.config import RunConfig
from attractor.experiments.table import load
from attractor.experiments.train import run_folder, runs_of
from attractor.reproduction.computed.table import COMPUTED
from attractor.reproduction.outcomes import Outcomes, of_runs
from attractor.reproduction.targets import TARGETS, Budget, Target
from attractor.runs.read import read_runs


def configs(target: Target, budget: Budget, seeds: Sequence[int] = ()) -> list[RunConfig]:
    """The runs of a target.

    Args:
        target: what to reproduce.
        budget: ``quick`` or ``full``.
        seeds: not those of the target.
    """
    found: dict[str, RunConfig] = {}
    for one in [target, *(TARGETS[key] for key in target.derived)]:
        for name, (own, labels) in one.experiments(budget).items():
            chosen = list(seeds or own)
            _, experiment = load(name, [f"seeds={chosen}"] if chosen else [])
            found |= {run.id: run for run in runs_of(name, experiment, labels)}
    if not found and target.key not in COMPUTED:
        other: Budget = "full" if budget == "quick" else "quick"
        more = target.note or "no experiment is configured for it"
        hint = f"Try --budget {other}." if target.experiments(other) else f"Its note: {more}."
        raise InputError(
            f"expected a target with runs at a {budget} budget, but {target.key} has none. {hint}"
        )
    return list(found.values())


def outcomes(found: Sequence[RunConfig], out: Path) -> Outcomes:
    """The numbers of those runs that are done."""
    folders = [folder for one in found if (folder := run_folder(out, one)).is_dir()]
    if not folders:
        return Outcomes([])
    runs, _ = read_runs(folders)
    return of_runs(runs, {(one.experiment, one.label) for one in found})


def finished(experiment: str, out: Path) -> Outcomes:
    """The numbers of all ended runs of an experiment in a folder, of any seeds.

    Args:
        experiment: its name; runs of another configuration than today's are left out.
        out: the folder that holds all runs.
    """
    if not (folder := out / experiment).is_dir():
        return Outcomes([])
    runs, _ = read_runs([folder])
    _, today = load(experiment, [f"seeds={sorted({run.seed for run in runs})}"])
    found = runs_of(experiment, today)
    ids = {one.id for one in found}
    wanted = {(one.experiment, one.label) for one in found}
    return of_runs((run for run in runs if run.folder.name in ids), wanted)
