"""Runs of configurations: one process each, built by its kind and driven in its folder."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from attractor.errors import RunError
from attractor.experiments.config import ExperimentConfig, RunConfig
from attractor.experiments.kinds import kind
from attractor.experiments.work import Work
from attractor.runs import folder as folders
from attractor.runs import jobs as parallel
from attractor.runs.data import checksum
from attractor.runs.drive import Context, Every, drive, never
from attractor.runs.jobs import Ended
from attractor.training.process import Diverged


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
) -> None:
    """Do a run, or what is left of it; a run that is done is left alone.

    Args:
        config: what to run.
        out: the folder that holds all runs.
        data: the data root.
        wait: wait for another process that has the same run, instead of saying so.
        force: do the run again, even if it is done.
        stop: asked after each step; if it says True, the run is saved and `Stopped` raised.
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
        raise RunError(
            f"{named(config)}: {error.reason}. The last good checkpoint is kept. {error.advice}"
        ) from error


def build(config: RunConfig, context: Context) -> Work:
    """The process of a run, at its start."""
    work: Work = kind(config.kind).build(config, context)
    return work


def named(config: RunConfig) -> str:
    """A run, as messages name it."""
    return f"{config.label}, seed {config.seed}"


def run_all(
    configs: Sequence[RunConfig],
    out: Path,
    *,
    data: Path | None = None,
    jobs: int | None = None,
    wait: bool = False,
    force: bool = False,
    on_end: Callable[[Ended[RunConfig]], None] = lambda ended: None,
) -> list[Ended[RunConfig]]:
    """Do the runs that are not done yet, as many at a time as there are cores.

    A failed run does not stop the others. SIGINT and SIGTERM let every run save itself first.

    Args:
        configs: what to run.
        out: the folder that holds all runs.
        data: the data root.
        jobs: processes; by default one per core and ``train.threads``.
        wait: wait for runs that another process has.
        force: do finished runs again; if that was stopped, it goes on.
        on_end: told of each run as it ends.
    """
    out = Path(out).absolute()  # workers may have another current folder
    places = {config.id: run_folder(out, config) for config in configs}
    if force:
        folders.repeat(places.values())
    else:
        folders.keep(places.values())
    todo = [config for config in configs if folders.is_open(places[config.id])]
    finished = [Ended(config, "done") for config in configs if config not in todo]
    for one in finished:
        on_end(one)
    if not todo:
        return finished
    threads = max(config.train.threads for config in todo)
    workers = jobs or max(1, parallel.cores() // threads)
    do = partial(_do, out=out, data=data, wait=wait)
    return finished + parallel.do_all(todo, do, name=named, jobs=workers, on_end=on_end)


def _do(
    config: RunConfig, *, out: Path, data: Path | None, wait: bool, stop: Callable[[], bool]
) -> None:
    train(config, out, data=data, wait=wait, stop=stop)
