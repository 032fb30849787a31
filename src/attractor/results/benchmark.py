"""A file of a benchmark, of whichever it is."""

from pathlib import Path
from typing import Any

from attractor.files import read_made
from attractor.results import speed, standing


def load(path: Path) -> standing.Standing | speed.Result:
    """Read what `attractor bench` or `attractor bench optimisers` wrote."""
    return read_made(path, _read, "a benchmark's file", "attractor bench")


def _read(whole: Any) -> standing.Standing | speed.Result:
    return speed.read(whole) if "timed" in whole else standing.read(whole)
