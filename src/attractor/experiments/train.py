"""One run: do its work, survive anything, end with the same numbers."""

import logging
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from attractor.errors import RunError
from attractor.experiments import checkpoint
from attractor.experiments.config import RunConfig
from attractor.experiments.folder import (
    DONE,
    FAILED,
    METRICS,
    Log,
    clear,
    describe,
    locked,
    run_folder,
    sweep,
    write_json,
)
from attractor.experiments.kinds import KINDS
from attractor.experiments.work import DivergedError, Work
from attractor.experiments.work import StoppedError as StoppedError
from attractor.tables import lookup

logger = logging.getLogger(__name__)


def train(
    config: RunConfig,
    out: Path,
    *,
    data: Path | None = None,
    wait: bool = False,
    force: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Do a run, or what is left of it; a run that is done is left alone.

    Args:
        config: what to run.
        out: the folder that holds all runs.
        data: the data root.
        wait: wait for another process that has the same run, instead of saying so.
        force: do the run again, even if it is done.
        stop: asked after each step; if it says True, the run is saved and `StoppedError` raised.
    """
    folder = run_folder(out, config)
    if (folder / DONE).exists() and not force:
        return
    kind = lookup("kind of experiment", KINDS, config.kind)
    work: Work = import_module(kind.module).build(config, data)
    work.prepare(out, stop)
    with locked(folder, wait=wait):
        if force:
            clear(folder)
        elif (folder / DONE).exists():
            return
        sweep(folder)
        (folder / FAILED).unlink(missing_ok=True)
        describe(folder, config)
        seconds, position = _restore(folder, work)
        log = Log(folder, position)
        try:
            _loop(config, folder, work, time.monotonic() - seconds, log, stop)
        except DivergedError as error:
            write_json(folder / FAILED, {"step": work.step + 1, "reason": error.reason})
            raise RunError(
                f"{config.label}, seed {config.seed}: {error.reason}. The last good checkpoint is "
                f"kept. {error.advice}"
            ) from error
        finally:
            log.close()


def _loop(
    config: RunConfig,
    folder: Path,
    work: Work,
    started: float,
    log: Log,
    stop: Callable[[], bool],
) -> None:
    while not work.done:
        for row in work.advance():
            log.add(step=work.step, **row)
        asked = stop()
        if asked or work.step % config.train.checkpoint_every == 0:
            saved = work.save()
            values = {
                "work": saved.values,
                "seconds": time.monotonic() - started,
                "position": log.position,
            }
            checkpoint.write(folder, saved._replace(values=values))
        if asked:
            raise StoppedError
    outcome = work.outcome()
    log.add(step=work.step, split=outcome.get("split", "test"), **outcome["test"])
    seconds = round(time.monotonic() - started, 3)
    write_json(folder / DONE, {"steps": work.step, "seconds": seconds, **outcome})


def _restore(folder: Path, work: Work) -> tuple[float, int]:
    """Put the work where the newest whole checkpoint left it; its seconds, and its log's length."""
    for saved in checkpoint.candidates(folder):
        values = saved.values
        metrics = folder / METRICS
        if "work" not in values:
            logger.warning("%s has a checkpoint of an older release; starting anew", folder)
            continue
        if not metrics.exists() or metrics.stat().st_size < values["position"]:
            continue
        work.restore(saved._replace(values=values["work"]))
        return values["seconds"], values["position"]
    return 0.0, 0
