"""A tiny experiment, and what is compared between two runs of it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from attractor.experiments.kinds import SequenceRun
from attractor.experiments.table import load

TINY = Path(__file__).with_name("tiny.toml")


def tiny(*changes: str, label: str = "GRU", seed: int = 0) -> SequenceRun:
    name, experiment = load(str(TINY), changes)
    found = [run for run in experiment.runs(name, [label]) if run.seed == seed]
    assert isinstance(found[0], SequenceRun)
    return found[0]


def numbers(folder: Path) -> tuple[bytes, dict[str, Any]]:
    """All that must be the same: every metric, to the bit, and the outcome but for its time."""
    done = json.loads((folder / "done.json").read_text())
    del done["seconds"], done["sha256"]
    return (folder / "metrics.jsonl").read_bytes(), done


def attractor(*arguments: str | Path, **options: Any) -> "subprocess.Popen[str]":
    """The command as a user calls it, in a real process of its own process group."""
    command = [sys.executable, "-m", "attractor.cli", *map(str, arguments)]
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1"}
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
        **options,
    )


def called(*arguments: str | Path, **options: Any) -> "subprocess.CompletedProcess[str]":
    """As `attractor`, to its end."""
    process = attractor(*arguments, **options)
    out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)
