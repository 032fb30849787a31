"""Runs of configurations: one process each, built by its kind and driven in its folder."""

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from attractor.errors import InputError, RunError
from attractor.experiments.config import ExperimentConfig, RunConfig, validated
from attractor.experiments.files import read_toml
from attractor.experiments.kinds import kind
from attractor.experiments.naming import Names
from attractor.experiments.work import Work
from attractor.files import write_atomic
from attractor.runs import folder as folders
from attractor.runs.data import checksum
from attractor.runs.drive import Context, Every, drive, never
from attractor.runs.engines import ENGINES, Places
from attractor.runs.jobs import Ended
from attractor.training.process import Diverged, Stopped

logger = logging.getLogger(__name__)


def run_folder(out: Path, config: RunConfig) -> Path:
    """Where the run of a configuration lives."""
    return out / config.experiment / config.id


def runs_of(name: str, experiment: ExperimentConfig, only: Iterable[str] = ()) -> list[RunConfig]:
    """Every run of an experiment, or of its variants that are named."""
    return experiment.runs(name, kind(experiment.kind).run, only)


def train(
    config: RunConfig,
    out: Path,
    *,
    data: Path | None = None,
    wait: bool = False,
    force: bool = False,
    stop: Callable[[], bool] = never,
    name: str | None = None,
) -> None:
    """Do a run, or what is left of it; a run that is done is left alone.

    Args:
        config: what to run.
        out: the folder that holds all runs.
        data: the data root.
        wait: wait for another process that has the same run, instead of saying so.
        force: do the run again, even if it is done.
        stop: asked after each step; if it says True, the run is saved and `Stopped` raised.
        name: of the run, in messages; by default its label and seed.
    """
    folder = run_folder(out, config)
    if force:
        folders.repeat([folder])
    context = Context(data, out, stop)
    try:
        drive(
            partial(build, config, context),
            folder,
            key=config.id,
            outcome=lambda work: work.outcome(),
            context=context,
            every=Every(steps=config.train.checkpoint_every),
            files={folders.CONFIG: config.to_toml()},
            data=lambda work: checksum(work.data),
            threads=config.train.threads,
            wait=wait,
        )
    except Diverged as error:
        name = name or f"{config.label}, seed {config.seed}"
        raise RunError(
            f"{name}: {error.reason}. The last good checkpoint is kept. {error.advice}"
        ) from error


def build(config: RunConfig, context: Context) -> Work:
    """The process of a run, at its start."""
    work: Work = kind(config.kind).build(config, context)
    return work


def run_all(
    configs: Sequence[RunConfig],
    out: Path,
    *,
    data: Path | None = None,
    places: Places = Places(),  # noqa: B008 - a constant
    wait: bool = False,
    force: bool = False,
    retry: bool = True,
    keep_refused: bool = False,
    on_end: Callable[[Ended[RunConfig]], None] = lambda ended: None,
) -> list[Ended[RunConfig]]:
    """Do the runs that are not done yet, as many at a time as there is room for.

    A failed run does not stop the others. SIGINT and SIGTERM let every run save itself first.

    Args:
        configs: what to run.
        out: the folder that holds all runs.
        data: the data root.
        places: where, and how many at a time; by default on this machine, one per core and
            ``train.threads``.
        wait: wait for runs that another process has.
        force: do finished runs again; if that was stopped, it goes on.
        retry: try runs again that failed before; else they are told with what they failed of.
        keep_refused: leave a folder with the reason for each run whose settings were refused, as
            for one that failed, so that what comes of a grid has all of its points.
        on_end: told of each run as it ends.
    """
    places.check()
    out = Path(out).absolute()  # workers may have another current folder
    name = Names.of(configs)
    folder_of = {config.id: run_folder(out, config) for config in configs}
    if force:
        folders.repeat(folder_of.values())
    else:
        folders.keep(folder_of.values())
    todo = [config for config in configs if folders.is_open(folder_of[config.id])]
    finished = [Ended(config, "done") for config in configs if config not in todo]
    for one in finished:
        _mend(folder_of[one.config.id], one.config)
    if not retry:
        failed = {config.id: folders.failure(folder_of[config.id]) for config in todo}
        finished += [
            Ended(
                config, "failed", f"{name(config)} failed before: {why.rstrip('.')}. Try --retry."
            )
            for config in todo
            if (why := failed[config.id])
        ]
        todo = [config for config in todo if not failed[config.id]]

    def ended(one: Ended[RunConfig]) -> None:
        if keep_refused and one.how == "refused":
            folders.refuse(folder_of[one.config.id], one.config.to_toml(), one.message)
        on_end(one)

    for one in finished:
        on_end(one)
    if not todo:
        return finished
    threads = max(config.train.threads for config in todo)
    # a cluster may start a run again elsewhere before its first worker has let it go
    do = partial(_do, name=name, out=out, data=data, wait=wait or places.engine != "local")
    run = ENGINES[places.engine]
    return finished + run(
        todo, do, name=name, folder=out, threads=threads, places=places, on_end=ended
    )


def _mend(folder: Path, config: RunConfig) -> None:
    """Write the settings of a finished run again, if they are no longer those that it had."""
    try:
        content = read_toml(folder / folders.CONFIG)
        whole = validated(kind(config.kind).run, content, folders.CONFIG).id == config.id
    except InputError:
        whole = False
    if not whole:
        logger.warning("%s: %s is damaged, and written again", folder, folders.CONFIG)
        with suppress(InputError):  # on a disk that takes nothing whoever reads it is told
            write_atomic(folder / folders.CONFIG, config.to_toml())


def _do(
    config: RunConfig,
    *,
    name: Names,
    out: Path,
    data: Path | None,
    wait: bool,
    stop: Callable[[], bool],
) -> None:
    try:
        train(config, out, data=data, wait=wait, stop=stop, name=name(config))
    except (Stopped, InputError, RunError):
        raise
    except Exception as error:  # a mistake of ours, or of a user's own class: kept with the run
        folders.fail(run_folder(out, config), f"{type(error).__name__}: {error}".splitlines()[0])
        raise
