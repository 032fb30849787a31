"""The folder of one run: its files, its lock, its log of metrics."""

import json
import os
import platform
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from attractor.errors import RunError
from attractor.experiments.config import RunConfig
from attractor.files import explained, write_atomic

METRICS = "metrics.jsonl"
DONE = "done.json"
FAILED = "failed.json"


class BusyError(RunError):
    """Another process has the run."""


def run_folder(out: Path, config: RunConfig) -> Path:
    """Where the run of a configuration lives."""
    return out / config.experiment / config.id


def is_done(out: Path, config: RunConfig) -> bool:
    """Whether a run has come to its end."""
    return (run_folder(out, config) / DONE).exists()


@contextmanager
def locked(folder: Path, *, wait: bool) -> Iterator[None]:
    """Hold a run for this process alone."""
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock", timeout=-1 if wait else 0)
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
        lock.release()


def clear(folder: Path) -> None:
    """Forget a run; that it is done first, so that a half-forgotten run is not taken for one."""
    (folder / DONE).unlink(missing_ok=True)
    for path in folder.iterdir():
        if path.is_file() and path.name != ".lock":
            path.unlink()


def sweep(folder: Path) -> None:
    """Remove what a killed process was about to rename."""
    for path in folder.glob(".*"):
        if path.is_file() and path.name != ".lock":
            path.unlink()


def describe(folder: Path, config: RunConfig) -> None:
    """Write what the run is and where it runs."""
    write_atomic(folder / "config.toml", config.to_toml())
    write_json(folder / "environment.json", environment(config.train.threads))


def environment(threads: int) -> dict[str, Any]:
    """What bitwise equality depends on, and what a reader wants to know."""
    import torch

    packages = ("attractor", "torch", "numpy", "safetensors")
    return {
        **{name: version(name) for name in packages},
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": torch.backends.cpu.get_cpu_capability(),
        "threads": threads,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "command": shlex.join(["attractor", *sys.argv[1:]]) if "attractor" in sys.argv[0] else "",
    }


def write_json(path: Path, content: dict[str, Any]) -> None:
    write_atomic(path, json.dumps(content, indent=1) + "\n")


class Log:
    """``metrics.jsonl``: one line per measurement, added at the end.

    A checkpoint remembers how long the file was (`position`). A run that goes on from it cuts the
    file there first, and writes the same lines again.
    """

    def __init__(self, folder: Path, position: int = 0) -> None:
        self.path = folder / METRICS
        with explained(self.path):
            self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115 - closed by the owner
            self._file.truncate(position)

    @property
    def position(self) -> int:
        """The length of the file, once all of it is safely on the disk."""
        with explained(self.path):
            os.fsync(self._file.fileno())
        return os.fstat(self._file.fileno()).st_size

    def add(self, **row: Any) -> None:
        with explained(self.path):
            self._file.write((json.dumps(row) + "\n").encode())

    def close(self) -> None:
        self._file.close()
