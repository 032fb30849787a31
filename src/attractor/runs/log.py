"""``metrics.jsonl``: one line for each measurement, added at the end."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from attractor.files import explained
from attractor.runs.folder import LOG_FILE


class Mark(NamedTuple):
    """How far a log was, and the checksum of all up to there."""

    position: int = 0
    sha256: str = hashlib.sha256().hexdigest()


class Log:
    """The log of a run, and the checksum of all that is in it.

    A checkpoint remembers how far the file was (`mark`). A run that goes on from it cuts the file
    there first, and writes the same lines again.

    Args:
        folder: of the run.
        mark: where to go on; what is before it must be there, see `holds`.
    """

    def __init__(self, folder: Path, mark: Mark = Mark()) -> None:  # noqa: B008 - a constant
        self.path = folder / LOG_FILE
        with explained(self.path):
            self._file = open(self.path, "a+b", buffering=0)  # noqa: SIM115 - closed by `__exit__`
            self._file.truncate(mark.position)
            self._file.seek(0)
            self._digest = hashlib.sha256(self._file.read())

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, **row: Any) -> None:
        line = (json.dumps(row) + "\n").encode()
        with explained(self.path):
            self._file.write(line)
        self._digest.update(line)

    @property
    def mark(self) -> Mark:
        """Where the log is, once all of it is safely on the disk."""
        with explained(self.path):
            os.fsync(self._file.fileno())
        return Mark(os.fstat(self._file.fileno()).st_size, self._digest.hexdigest())


def holds(folder: Path, mark: Mark) -> bool:
    """Whether the log of a folder is, up to a mark, what was written."""
    try:
        with open(folder / LOG_FILE, "rb") as file:
            found = file.read(mark.position)
    except OSError:
        found = b""
    return hashlib.sha256(found).hexdigest() == mark.sha256
