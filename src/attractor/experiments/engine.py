"""Many runs: side by side on this machine, watched, stopped and taken up again."""

import logging
import os
import signal
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from attractor.errors import InputError, RunError
from attractor.experiments.config import RunConfig
from attractor.experiments.folder import BusyError, is_done

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ended:
    """How one run ended: ``done``, ``failed``, ``busy`` or ``stopped``, and why."""

    config: RunConfig
    how: str
    message: str = ""


def run_all(
    configs: Sequence[RunConfig],
    out: Path,
    *,
    data: Path | None = None,
    jobs: int | None = None,
    wait: bool = False,
    force: bool = False,
    on_end: Callable[[Ended], None] = lambda ended: None,
) -> list[Ended]:
    """Do the runs that are not done yet, as many at a time as there are cores.

    A failed run does not stop the others. SIGINT and SIGTERM let every run save itself first.

    Args:
        configs: what to run.
        out: the folder that holds all runs.
        data: the data root.
        jobs: processes; by default one per core and ``train.threads``.
        wait: wait for runs that another process has.
        force: do finished runs again.
        on_end: told of each run as it ends.
    """
    todo = [config for config in configs if force or not is_done(out, config)]
    finished = [Ended(config, "done") for config in configs if config not in todo]
    for one in finished:
        on_end(one)
    if not todo:
        return finished
    with stoppable() as flag:
        arguments = (out, data, wait, force, flag)
        workers = min(jobs or _default_jobs(todo), len(todo))
        if workers <= 1:
            ended: Iterator[Ended] = (_run(config, *arguments) for config in todo)
        else:
            ended = _parallel(todo, arguments, workers)
        results = finished
        for one in ended:
            on_end(one)
            results.append(one)
    return results


def _default_jobs(configs: Sequence[RunConfig]) -> int:
    threads = max(config.train.threads for config in configs)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, (cores or 1) // threads)


def _parallel(
    configs: Sequence[RunConfig], arguments: tuple[Any, ...], workers: int
) -> Iterator[Ended]:
    from joblib import Parallel, delayed

    pool = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    # workers inherit that signals are ignored and leave them to this process, which asks them to
    # stop through the file; a handler of their own would come too late for one at their start
    with _handling(signal.SIG_IGN):
        ended = pool(delayed(_run)(config, *arguments) for config in configs)
    yield from ended


def _run(
    config: RunConfig, out: Path, data: Path | None, wait: bool, force: bool, flag: Path
) -> Ended:
    """One run, in this process or in a worker, with every expected ending turned into a value."""
    from attractor.experiments.train import StoppedError, train

    if flag.exists():
        return Ended(config, "stopped")
    try:
        train(config, out, data=data, wait=wait, force=force, stop=flag.exists)
    except StoppedError:
        return Ended(config, "stopped")
    except BusyError as error:
        return Ended(config, "busy", str(error))
    except InputError as error:
        return Ended(config, "refused", str(error))
    except RunError as error:
        return Ended(config, "failed", str(error))
    except Exception as error:
        # a mistake of ours, or of a cell of the user's: it must not stop the other runs
        logger.info("%s", "".join(traceback.format_exception(error)))
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        message = f"{config.label}, seed {config.seed}: unexpected {what} (all of it with -v -j 1)"
        return Ended(config, "failed", message)
    return Ended(config, "done")


@contextmanager
def stoppable() -> Iterator[Path]:
    """A file whose existence asks every process of this call to save and stop.

    SIGINT and SIGTERM make it; a second signal ends the process at once.
    """
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        flag.touch()

    with tempfile.TemporaryDirectory(prefix="attractor-") as folder:
        flag = Path(folder) / "stop"
        with _handling(ask):
            yield flag


@contextmanager
def _handling(handler: Any) -> Iterator[None]:
    """Answer SIGINT and SIGTERM by a handler, where Python lets us: in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, handler) for number in numbers]
    try:
        yield
    finally:
        for number, old in zip(numbers, before, strict=True):
            signal.signal(number, old)
