"""A run as a file with which anyone can repeat it."""

import tomli_w

from attractor.runs.environment import segments
from attractor.runs.read import Run


def repeatable(run: Run) -> str:
    """The configuration of a run, below where it ran, and wherever it was taken up.

    Args:
        run: as it was read from its folder.
    """
    lines = ["# `attractor run FILE.toml`, with this as the file, repeats a run. It ran with"]
    for place in segments(run.environment):
        lines += [f"# {key}: {' '.join(str(value).split())}" for key, value in place.items()]
    return "\n".join([*lines, "", tomli_w.dumps(run.config)])
