"""A tiny experiment, and what is compared between two runs of it."""

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attractor.experiments.config import RunConfig
from attractor.experiments.kinds.continual import ContinualRun
from attractor.experiments.kinds.supervised import SupervisedRun
from attractor.experiments.table import load
from attractor.experiments.train import runs_of
from experiments import warm

TINY = Path(__file__).with_name("tiny.toml")
TINY_OPTIMISERS = TINY.with_name("tiny-optimisers.toml")
TINY_STREAM = TINY.with_name("tiny-stream.toml")


def one(file: Path, label: str, changes: Iterable[str] = (), seed: int = 0) -> RunConfig:
    """The run of a variant and a seed."""
    name, experiment = load(str(file), changes)
    (found,) = (run for run in runs_of(name, experiment, [label]) if run.seed == seed)
    return found


def tiny(*changes: str, label: str = "GRU", seed: int = 0) -> SupervisedRun:
    """A recurrent network on sequences."""
    found = one(TINY, label, changes, seed)
    assert isinstance(found, SupervisedRun)
    return found


def tiny_optimiser(label: str, *changes: str, seed: int = 0) -> SupervisedRun:
    """Another optimiser for each label, some of them tuned or meta-trained first."""
    found = one(TINY_OPTIMISERS, label, changes, seed)
    assert isinstance(found, SupervisedRun)
    return found


def tiny_stream(*changes: str, label: str = "ER") -> ContinualRun:
    """Another strategy on a stream for each label."""
    found = one(TINY_STREAM, label, changes)
    assert isinstance(found, ContinualRun)
    return found


def rows_of(folder: Path, split: str) -> list[dict[str, Any]]:
    """What was logged of a split."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [row for row in map(json.loads, lines) if row["split"] == split]


def outcome(folder: Path) -> dict[str, Any]:
    """How a run ended."""
    found: dict[str, Any] = json.loads((folder / "done.json").read_text())
    return found


def numbers(folder: Path) -> tuple[bytes, dict[str, Any]]:
    """All that must be the same: every metric, to the bit, and the outcome but for its time."""
    done = json.loads((folder / "done.json").read_text())
    del done["seconds"], done["sha256"]
    done.pop("seconds_per_task", None)
    return (folder / "metrics.jsonl").read_bytes(), done


def attractor(*arguments: str | Path, cwd: Path | None = None) -> warm.Process:
    """The command as a user calls it, in a process and a process group of its own."""
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1"}
    return warm.Process([*map(str, arguments)], environment, cwd or Path.cwd())


def called(*arguments: str | Path, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """As `attractor`, to its end."""
    process = attractor(*arguments, cwd=cwd)
    out, err = process.communicate()
    return subprocess.CompletedProcess(arguments, process.wait(), out, err)
