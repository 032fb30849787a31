"""The folder of one run: its files, its lock, and what tells that it is done."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from attractor.errors import InputError, RunError
from attractor.files import explained, write_atomic

CONFIG = "config.toml"
LOG_FILE = "metrics.jsonl"
DONE = "done.json"
FAILED = "failed.json"
STATUS = "status.json"
AGAIN = "again"
"""There while a finished run is to be done again, until it is done."""
LOCK = ".lock"


class BusyError(RunError):
    """Another process has the run."""


@contextmanager
def locked(folder: Path, *, wait: bool) -> Iterator[None]:
    """Hold a folder for this process alone; it is gone again if nothing was put into it."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    with explained(folder):
        _make(folder)
        lock = FileLock(folder / LOCK, timeout=-1 if wait else 0)
        try:
            lock.acquire()
        except Timeout as error:
            raise BusyError(
                f"{folder.name} is running in another process. Wait for it, or use --wait; "
                "it goes on where it is, and nothing is done twice."
            ) from error
    try:
        yield
    finally:
        if made and [path.name for path in folder.iterdir()] in ([], [LOCK]):
            (folder / LOCK).unlink(missing_ok=True)
            with suppress(OSError):
                for path in made:
                    path.rmdir()
        lock.release()


def _make(folder: Path) -> None:
    """Make a folder, again if a process that made it too takes it away meanwhile."""
    for _ in range(100):
        with suppress(FileNotFoundError, FileExistsError):
            return folder.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)


def clear(folder: Path) -> None:
    """Forget a run; that it is done first, so that a half-forgotten run is not taken for one."""
    (folder / DONE).unlink(missing_ok=True)
    for path in folder.iterdir():
        if path.is_file() and path.name not in (LOCK, AGAIN):
            path.unlink()


def sweep(folder: Path) -> None:
    """Remove what a killed process was about to rename."""
    for path in folder.glob(".*"):
        if path.is_file() and path.name != LOCK:
            path.unlink()


def is_open(folder: Path) -> bool:
    """Whether something is left to do: no end yet, or not as it was written, or again."""
    return not (folder / DONE).exists() or (folder / AGAIN).exists() or bool(damage(folder))


def repeat(folders: Iterable[Path]) -> None:
    """Mark finished runs, so that they are open again.

    If one still has the mark of a call for the same runs, that call was stopped: it goes on, and
    the runs that it has done are left alone.
    """
    folders = list(folders)
    names = "\n".join(sorted(folder.name for folder in folders))
    call = hashlib.sha256(names.encode()).hexdigest()
    if not any(_marked(folder) == call for folder in folders):
        for folder in folders:
            if (folder / DONE).exists():
                write_atomic(folder / AGAIN, call)


def _marked(folder: Path) -> str:
    """Which call asked for a run again, or nothing."""
    try:
        return (folder / AGAIN).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def keep(folders: Iterable[Path]) -> None:
    """Take the mark from finished runs: what they came to stays."""
    for folder in folders:
        if (folder / DONE).exists() and (folder / AGAIN).exists():
            with explained(folder / AGAIN):
                (folder / AGAIN).unlink(missing_ok=True)


def write_done(folder: Path, content: dict[str, Any], log: str) -> None:
    """Write how a run ended, with a checksum of it and of its log."""
    sealed = {**content, "log": log}
    write_json(folder / DONE, {**sealed, "sha256": _seal(sealed)})


def damage(folder: Path) -> str:
    """What is wrong with the files of a finished run, in a few words; nothing if all is well.

    Of runs of releases that wrote no checksums only the form is known.
    """
    try:
        found = json.loads((folder / DONE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return f"{DONE} cannot be read"
    if not isinstance(found, dict) or "steps" not in found:
        return f"{DONE} does not tell how a run ended"
    seal = found.pop("sha256", None)
    if seal is None:
        return f"{DONE} has lost its checksum" if "log" in found else ""
    if seal != _seal(found):
        return f"{DONE} is not what the run wrote"
    try:
        log = hashlib.sha256((folder / LOG_FILE).read_bytes()).hexdigest()
    except OSError:
        return f"{LOG_FILE} cannot be read"
    return "" if log == found["log"] else f"{LOG_FILE} is not what the run wrote"


def fail(folder: Path, reason: str) -> None:
    """Keep with a run why it failed, where it has a folder already that takes it."""
    if folder.is_dir() and not (folder / FAILED).exists():
        with suppress(InputError):
            write_json(folder / FAILED, {"reason": reason})


def refuse(folder: Path, config: str, reason: str) -> None:
    """Make a folder of a run that could not begin, with its settings and why, if it has none.

    Where nothing can be written there is none: that is why the run was refused.
    """
    if not folder.exists():
        with suppress(InputError):
            write_atomic(folder / CONFIG, config)
            write_json(folder / FAILED, {"reason": reason})


def failure(folder: Path) -> str:
    """Why a run failed, or nothing if it did not."""
    try:
        found = json.loads((folder / FAILED).read_bytes())
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, RecursionError):
        return f"{FAILED} cannot be read"
    return str(found.get("reason", "unknown")) if isinstance(found, dict) else "unknown"


def write_json(path: Path, content: dict[str, Any]) -> None:
    write_atomic(path, json.dumps(content, indent=1) + "\n")


def _seal(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
