"""Run folders as runs of all kinds write them, without running any."""

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

from attractor.runs.folder import write_done
from attractor.tracking import Point

CONFIG = """
experiment = {experiment!r}
budget = "quick"
label = "LSTM"
seed = 3

[model]
cell = "lstm"
sizes = [3, 4]
"""
ROWS: dict[str, list[dict[str, Any]]] = {
    "supervised": [
        {"step": -2, "split": "meta", "loss": 2.3, "last": 2.2},
        {"step": -1, "split": "meta", "loss": 2.2, "last": 0.1},
        {"step": 10, "split": "train", "loss": 0.1 + 0.2, "gradient_norm": 1e-30},
        {"step": 10, "split": "valid", "loss": float("nan"), "accuracy": 1},
    ],
    "continual": [
        {"step": 50, "split": "train", "loss": 0.7},
        {"step": 100, "split": "test", "accuracy": 0.25, "task_1": 0.5, "task_2": 0.0},
    ],
    "lifelong": [
        {"step": 300, "split": "test", "level": 2, "current_accuracy": 0.6, "task_1": 1 / 3},
    ],
}
ENDS = {
    "supervised": {"loss": 0.123456789012345, "accuracy": 0.5},
    "continual": {"accuracy": 0.25, "forgetting": -0.125},
    "lifelong": {"current_accuracy": 0.8, "levels": 1.0},
}


def write_run(
    folder: Path, rows: list[dict[str, Any]], end: dict[str, float] | None = None
) -> Path:
    """A run folder with these rows; with an end its last row is logged too, as `drive` does."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(CONFIG.format(experiment=folder.parent.name))
    if end is not None:
        rows = [*rows, {"step": rows[-1]["step"], "split": "test", **end}]
    log = "".join(json.dumps(row) + "\n" for row in rows).encode()
    (folder / "metrics.jsonl").write_bytes(log)
    (folder / "done.json").unlink(missing_ok=True)
    if end is not None:
        told = {"steps": rows[-1]["step"], "test": end}
        write_done(folder, told, hashlib.sha256(log).hexdigest())
    return folder


def write_kinds(root: Path) -> dict[str, Path]:
    """A finished run of each kind."""
    return {kind: write_run(root / kind / "a-3-1f", ROWS[kind], ENDS[kind]) for kind in ROWS}


def expected(kind: str) -> list[Point]:
    """By hand: each number of a row once, the first of two at the same step, and the end."""
    points: dict[tuple[str, int], float] = {}
    rows = ROWS[kind]
    last = {"step": rows[-1]["step"], "split": "test", **ENDS[kind]}
    for row in [*rows, last]:
        for name in row.keys() - {"step", "split"}:
            points.setdefault((f"{row['split']}/{name}", row["step"]), float(row[name]))
    for name, value in ENDS[kind].items():
        points[f"final/{name}", last["step"]] = value
    return sorted(Point(name, step, value) for (name, step), value in points.items())


def written(place: Path) -> list[Point]:
    """The points in a CSV file, in order."""
    with open(place / "metrics.csv", newline="") as file:
        rows = [*csv.reader(file)]
    assert rows[0] == ["name", "step", "value"]
    return sorted(Point(name, int(step), float(value)) for name, step, value in rows[1:])


def same(found: list[Point], wanted: list[Point]) -> bool:
    """Whether points are equal to the last bit, NaN included."""
    return [*map(repr, found)] == [*map(repr, wanted)]
