"""The folder of a run below that of a sink, and the mark of what it holds."""

import json
import shutil
from pathlib import Path
from typing import Any

from attractor.errors import InputError
from attractor.files import write_atomic
from attractor.runs.folder import LOCK

MARK = "tracked.json"
"""What the sink holds of the run for certain: empty while a process writes to it."""


def begin(place: Path, *, fresh: bool) -> None:
    """Mark a folder as one that is written to; a fresh one is emptied, if it is one of ours."""
    if fresh:
        found = [path for path in place.iterdir() if path.name != LOCK]
        if found and not (place / MARK).exists():
            raise InputError(
                f"expected {place} to be new or a folder that tracking made, but it holds "
                f"{found[0].name}. Choose another --out."
            )
        for path in found:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name != MARK:
                path.unlink()
    hold(place, {})


def hold(place: Path, held: dict[str, Any]) -> None:
    """Say what a sink holds of a run."""
    write_atomic(place / MARK, json.dumps(held) + "\n")


def holds(place: Path) -> dict[str, Any]:
    """What `hold` said, or nothing."""
    try:
        found = json.loads((place / MARK).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
