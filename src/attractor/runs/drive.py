"""One process driven in a folder: locked, restored, logged, saved, stopped. Written once."""

import json
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from attractor.errors import InputError
from attractor.files import write_atomic
from attractor.runs import checkpoint
from attractor.runs.environment import environment, record
from attractor.runs.folder import (
    AGAIN,
    DONE,
    FAILED,
    STATUS,
    clear,
    damage,
    is_open,
    locked,
    sweep,
    write_done,
    write_json,
)
from attractor.runs.log import Log, Mark, holds
from attractor.team import agreed, team
from attractor.training.process import Diverged, Process, Row, Stopped

logger = logging.getLogger(__name__)

P = TypeVar("P", bound=Process)

SHARE = 0.05
"""Of the time that may go into checkpoints: those that take long come less often."""
BETWEEN_STATUS = 1.0


def never() -> bool:
    """Nobody asks to stop."""
    return False


class Context(NamedTuple):
    """What is around a run: where data are, where runs go, and whether to stop now."""

    data: Path | None = None
    out: Path = Path("runs")
    stop: Callable[[], bool] = never


class Every(NamedTuple):
    """How often to save: after so many seconds, and after so many steps too if that is asked."""

    seconds: float = 10.0
    steps: int | None = None


def drive(
    make: Callable[[], P],
    folder: Path,
    *,
    key: str,
    outcome: Callable[[P], dict[str, Any]],
    context: Context,
    every: Every = Every(),  # noqa: B008 - a constant
    files: Mapping[str, str] | None = None,
    data: Callable[[P], str] | None = None,
    threads: int = 1,
    makes: Path | None = None,
    wait: bool = False,
    watch: Callable[[P, list[Row]], None] = lambda process, rows: None,
) -> None:
    """Take a process from where it is to its end; one that is done is left alone.

    Killed at any moment, it goes on from its last checkpoint and ends with the same numbers, bit
    for bit. Raises `Stopped` when the context asks to stop, `Diverged` when the process does, and
    `BusyError` when another process has the folder.

    Args:
        make: makes the process at its start; called once the folder is locked.
        folder: where its log, checkpoints and end are written.
        key: what the process is; checkpoints with another key are refused.
        outcome: what it ends with; measures under ``test`` are also logged.
        context: where data are and whether to stop, asked after each step.
        every: how often to save.
        files: further files of the folder, by name.
        data: a checksum of the data of the process.
        threads: of torch, for the record.
        makes: a file that `outcome` writes, without which the process is not done.
        wait: wait for another process that has the folder, instead of saying so.
        watch: told after each step.
    """
    if team().rank:
        _follow(make, folder, key)
        return
    if not _open(folder, makes):
        agreed(False)
        return
    with locked(folder, wait=wait):
        if not _open(folder, makes):
            agreed(False)
            return
        if (folder / DONE).exists():
            _reopen(folder)
        sweep(folder)
        process = make()
        (folder / FAILED).unlink(missing_ok=True)
        for name, text in (files or {}).items():
            write_atomic(folder / name, text)
        saved = _restore(folder, process, key)
        agreed(True)
        here = environment(threads) | ({} if data is None else {"data": data(process)})
        for one in record(folder, here, process.step if saved else None):
            logger.warning("%s goes on elsewhere: %s; its numbers may differ", folder.name, one)
        mark = Mark(*saved["log"]) if saved else Mark()
        started = time.monotonic() - (saved["seconds"] if saved else 0.0)
        with Log(folder, mark) as log:
            run = _Run(folder, process, key, log, started)
            try:
                _advance(run, context.stop, every, watch)
                found = outcome(process)
            except Diverged as error:
                write_json(folder / FAILED, {"step": process.step + 1, "reason": error.reason})
                raise
            finally:
                (folder / STATUS).unlink(missing_ok=True)
            if "test" in found:
                log.add(step=process.step, split=found.get("split", "test"), **found["test"])
            seconds = round(time.monotonic() - started, 3)
            told = {"steps": process.step, "seconds": seconds, **found}
            write_done(folder, told, log.mark.sha256)
        (folder / AGAIN).unlink(missing_ok=True)


def _open(folder: Path, makes: Path | None) -> bool:
    return is_open(folder) or not (makes is None or makes.exists())


def _reopen(folder: Path) -> None:
    if (folder / AGAIN).exists():
        clear(folder)
        return
    if damaged := damage(folder):
        logger.warning("%s: %s; going back to its last checkpoint", folder, damaged)
    (folder / DONE).unlink()


class _Run(NamedTuple):
    """A process on its way."""

    folder: Path
    process: Process
    key: str
    log: Log
    started: float

    def save(self) -> float:
        """Write a checkpoint; how long it took."""
        before = time.monotonic()
        state = {
            "key": self.key,
            "process": self.process.state_dict(),
            "log": self.log.mark,
            "seconds": before - self.started,
        }
        checkpoint.write(self.folder, state)
        return time.monotonic() - before

    def tell(self, rate: float) -> None:
        """Write how far it is, for those who watch."""
        status = {"step": self.process.step, "rate": rate, "time": time.time()}
        write_atomic(self.folder / STATUS, json.dumps(status) + "\n", lasting=False)


def _advance(
    run: _Run, stop: Callable[[], bool], every: Every, watch: Callable[[Any, list[Row]], None]
) -> None:
    process = run.process
    first, begun = process.step, time.monotonic()
    save_at, tell_at = begun + every.seconds, begun + BETWEEN_STATUS
    saved = False
    while not process.done:
        rows = process.advance()
        saved = False
        for row in rows:
            run.log.add(step=process.step, **row)
        watch(process, rows)
        now, asked = time.monotonic(), stop()
        counted = every.steps is not None and process.step % every.steps == 0
        asked, due = agreed(asked, asked or counted or now >= save_at)
        if due:
            took = run.save()
            saved = True
            save_at = time.monotonic() + max(every.seconds, took / SHARE)
        if asked:
            raise Stopped
        if now >= tell_at:
            run.tell((process.step - first) / (now - begun))
            tell_at = now + BETWEEN_STATUS
    if not saved:
        run.save()


def _follow(make: Callable[[], P], folder: Path, key: str) -> None:
    """Take the steps of a run that the first process of a team drives, and write nothing."""
    (open_,) = agreed(False)
    if not open_:
        return
    process = make()
    _restore(folder, process, key)
    saved = False
    while not process.done:
        process.advance()
        asked, saved = agreed(False, False)
        if saved:
            process.state_dict()
        if asked:
            raise Stopped
    if not saved:
        process.state_dict()


def _restore(folder: Path, process: Process, key: str) -> dict[str, Any] | None:
    """Put the process where the newest whole checkpoint left it, if there is one."""
    for saved in checkpoint.candidates(folder):
        if saved["key"] != key:
            raise InputError(
                f"expected {folder} to hold the checkpoints of {key}, but they are of "
                f"{saved['key']}. Delete that folder, or use another --out."
            )
        if not holds(folder, Mark(*saved["log"])):
            logger.warning(
                "%s has another log than its checkpoint; going back to what was before it", folder
            )
            continue
        process.load_state_dict(saved["process"])
        found: dict[str, Any] = saved
        return found
    return None
