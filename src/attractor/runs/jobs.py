"""Many runs: side by side on this machine, stopped together, and gone when their parent is."""

import logging
import os
import shutil
import signal
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Generic, Protocol, TypeVar

from filelock import FileLock, Timeout

from attractor.errors import InputError, RunError
from attractor.files import explained
from attractor.runs.folder import BusyError
from attractor.runs.memory import keep_memory
from attractor.training.process import Stopped

logger = logging.getLogger(__name__)

T = TypeVar("T")
C = TypeVar("C", contravariant=True)

BETWEEN_LOOKS = 0.5
"""Seconds after which a worker whose parent is gone has noticed it, at most."""


@dataclass(frozen=True)
class Ended(Generic[T]):
    """How one run ended: ``done``, ``failed``, ``refused``, ``busy`` or ``stopped``, and why."""

    config: T
    how: str
    message: str = ""


class Do(Protocol[C]):
    """Does one run; `stop` tells whether to save and raise `Stopped`."""

    def __call__(self, config: C, *, stop: Callable[[], bool]) -> None: ...


def do_all(
    configs: Sequence[T],
    do: Do[T],
    *,
    name: Callable[[T], str],
    jobs: int,
    on_end: Callable[[Ended[T]], None] = lambda ended: None,
) -> list[Ended[T]]:
    """Do runs, so many at a time; one that fails does not stop the others.

    SIGINT and SIGTERM let every run save itself first. Workers end with this process, however it
    ends.

    Args:
        configs: what to run.
        do: does one of them, here or in a worker.
        name: of a run, in messages.
        jobs: processes.
        on_end: told of each run as it ends.
    """
    results: list[Ended[T]] = []
    with stoppable() as flag:
        workers = min(jobs, len(configs))
        if workers <= 1:
            ended: Iterator[Ended[T]] = (run_one(one, do, name, flag) for one in configs)
        else:
            ended = _parallel(configs, do, name, flag, workers)
        for one in ended:
            on_end(one)
            results.append(one)
    return results


def cores() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def at_a_time(asked: int | None, threads: int) -> int:
    """Runs at a time on this machine: so many as are asked for, or as its cores have room for."""
    return asked or max(1, cores() // threads)


def _parallel(
    configs: Sequence[T], do: Do[T], name: Callable[[T], str], flag: Path, workers: int
) -> Iterator[Ended[T]]:
    from joblib import Parallel, delayed

    pool = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    with FileLock(_alive(flag)):
        # workers inherit that signals are ignored and leave them to this process, which asks them
        # to stop through the file; here signals wait until its own answer to them is back
        with _held_back(), _handling(signal.SIG_IGN):
            ended = pool(delayed(_work)(one, do, name, flag) for one in configs)
        yield from ended


def _work(config: T, do: Do[T], name: Callable[[T], str], flag: Path) -> Ended[T]:
    with _ending_with_parent(_alive(flag)):
        return run_as_worker(config, do, name, flag)


def run_as_worker(config: T, do: Do[T], name: Callable[[T], str], flag: Path) -> Ended[T]:
    """As `run_one`, in a process that is there for runs alone."""
    keep_memory()
    return run_one(config, do, name, flag)


@contextmanager
def _held_back() -> Iterator[None]:
    """Let SIGINT and SIGTERM wait, where the platform can; none is lost."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _alive(flag: Path) -> Path:
    """The file that the parent of workers holds locked for as long as it lives."""
    return flag.with_name("alive")


@contextmanager
def _ending_with_parent(alive: Path) -> Iterator[None]:
    """End this process if the one that holds a file locked is gone: nobody waits for its work.

    The system gives a lock free however its holder ended, SIGKILL included, on every platform.
    """
    over = threading.Event()

    def watch() -> None:
        lock = FileLock(alive, timeout=0)
        while not over.wait(BETWEEN_LOOKS):
            if alive.exists():
                try:
                    lock.acquire()
                except Timeout:
                    continue
            shutil.rmtree(alive.parent, ignore_errors=True)
            os._exit(1)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def run_one(config: T, do: Do[T], name: Callable[[T], str], flag: Path) -> Ended[T]:
    """One run, in this process or in a worker, with every expected ending turned into a value.

    Args:
        config: what to run.
        do: does it.
        name: of a run, in messages.
        flag: the file whose existence asks to stop.
    """
    if flag.exists():
        return Ended(config, "stopped")
    try:
        do(config, stop=flag.exists)
    except Stopped:
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
        message = f"{name(config)}: unexpected {what} (all of it with -v -j 1)"
        return Ended(config, "failed", message)
    return Ended(config, "done")


@contextmanager
def stoppable(folder: Path | None = None) -> Iterator[Path]:
    """A file whose existence asks every process of this call to save and stop.

    SIGINT and SIGTERM make it; a second signal ends the process at once.

    Args:
        folder: where to put it, if processes on other machines are to see it.
    """
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        flag.touch()

    with ExitStack() as stack:
        with explained(folder or Path(tempfile.gettempdir())):
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
            made = tempfile.TemporaryDirectory(prefix=".attractor-", dir=folder)
        flag = Path(stack.enter_context(made)) / "stop"
        stack.enter_context(_handling(ask))
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
