"""Saved runs, read back from their folders."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from attractor.errors import InputError, shortened
from attractor.runs.folder import damage
from attractor.toml import parsed

Status = Literal["done", "failed", "unfinished"]

LARGEST = 1e100
"""A number beyond this is no measurement: its square could not be averaged."""


FURTHEST = 10**15
"""A step beyond this is no step of a run."""


class Damaged(NamedTuple):
    """A run folder that cannot be read, and what is wrong with it."""

    folder: Path
    reason: str


@dataclass(frozen=True)
class Run:
    """One run folder: what was asked, what was measured, how it ended.

    Args:
        folder: where it was read from.
        config: ``config.toml``.
        rows: ``metrics.jsonl``, the last row for each step and split, in order of steps.
        environment: ``environment.json``, or empty.
        outcome: ``done.json`` or ``failed.json``, or empty while unfinished.
        status: which of these two there was.
    """

    folder: Path
    config: dict[str, Any]
    rows: tuple[dict[str, Any], ...]
    environment: dict[str, Any]
    outcome: dict[str, Any]
    status: Status

    @property
    def experiment(self) -> str:
        return str(self.config["experiment"])

    @property
    def budget(self) -> str:
        return str(self.config["budget"])

    @property
    def label(self) -> str:
        return str(self.config["label"])

    @property
    def seed(self) -> int:
        return int(self.config["seed"])

    @property
    def test(self) -> dict[str, float]:
        """The finite measures on the test split; empty unless the run is done."""
        if self.status != "done":
            return {}
        found = self.outcome.get("test", {})
        if not isinstance(found, Mapping):
            return {}
        return {name: float(value) for name, value in found.items() if is_finite(value)}

    @property
    def split(self) -> str:
        """Whose data the final measures are of: ``test``, or ``valid`` where a run asked for it."""
        found = self.outcome.get("split", "test")
        return found if found in ("test", "valid") else "test"

    def series(self, split: str, metric: str) -> dict[int, float]:
        """The finite values of one measure by step."""
        return {
            row["step"]: float(row[metric])
            for row in self.rows
            if row["split"] == split and is_finite(row.get(metric))
        }


def load_runs(paths: Iterable[Path]) -> list[Run]:
    """Read every run under the paths: run folders, experiment folders or whole runs roots.

    Args:
        paths: folders; one that is named twice is read once.

    Returns:
        Runs by experiment, budget, label and seed; at least one. A damaged one is an error.
    """
    runs, damaged = read_runs(paths)
    if damaged:
        raise InputError(damaged[0].reason)
    return runs


def read_runs(paths: Iterable[Path]) -> tuple[list[Run], list[Damaged]]:
    """As `load_runs`, with the damaged runs told apart; it is an error if all of them are."""
    runs: list[Run] = []
    damaged: list[Damaged] = []
    for folder in _folders(paths):
        try:
            runs.append(_load(folder))
        except InputError as error:
            damaged.append(Damaged(folder, str(error)))
    if not runs:
        raise InputError(damaged[0].reason)
    runs.sort(key=lambda r: (r.experiment, r.budget, r.label.casefold(), r.seed, r.folder.name))
    return runs, damaged


def _folders(paths: Iterable[Path]) -> list[Path]:
    """The run folders in or below the paths, each once."""
    folders: dict[Path, Path] = {}
    for path in map(Path, paths):
        if not path.is_dir():
            got = "a file" if path.exists() else "nothing"
            raise InputError(
                f"expected a folder with runs at {path}, but got {got} there. "
                "Try the folder that `attractor run` wrote, such as runs."
            )
        found = sorted(file.parent for file in path.rglob("config.toml"))
        if not found:
            raise InputError(
                f"expected a config.toml in or below {path}, but got none. "
                "Try the folder that `attractor run` wrote, such as runs."
            )
        folders |= {folder.resolve(): folder for folder in found}
    if not folders:
        raise InputError("expected at least one folder with runs, but got none. Try runs.")
    return list(folders.values())


def is_finite(value: object) -> bool:
    """Whether a value is a number that a mean can be taken of."""
    return isinstance(value, int | float) and abs(value) < LARGEST


def _load(folder: Path) -> Run:
    config = _parsed(folder / "config.toml", parsed, "TOML") or {}
    needed: dict[str, type] = {"experiment": str, "budget": str, "label": str, "seed": int}
    for key, kind in needed.items():
        if type(config.get(key)) is not kind:
            raise InputError(
                f"expected {key!r} in {folder / 'config.toml'} to be {kind.__name__}, but got "
                f"{shortened(config.get(key))}. Try a folder that `attractor run` wrote."
            )
    rows = _rows(folder / "metrics.jsonl")
    environment = _parsed(folder / "environment.json", json.loads, "JSON") or {}
    # A run that failed and was then repeated to its end is done, so this comes first.
    outcome = _parsed(folder / "done.json", json.loads, "JSON")
    if outcome is not None:
        if why := damage(folder):
            raise InputError(
                f"expected {folder} as its run wrote it, but {why}. Repeat it with "
                "`attractor run`, or leave it out."
            )
        return Run(folder, config, rows, environment, outcome, "done")
    outcome = _parsed(folder / "failed.json", json.loads, "JSON")
    status: Status = "unfinished" if outcome is None else "failed"
    return Run(folder, config, rows, environment, outcome or {}, status)


def _parsed(path: Path, parse: Callable[[str], Any], kind: str) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    try:
        found = parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _corrupt(f"to be able to read {path}", str(error.strerror)) from error
    except (ValueError, RecursionError) as error:
        raise _corrupt(f"{path} to be {kind}", f"text that is not ({error})") from error
    if not isinstance(found, dict):
        raise _corrupt(f"{path} to hold an object", type(found).__name__)
    return found


def _rows(path: Path) -> tuple[dict[str, Any], ...]:
    # A run that goes on from a checkpoint may write some steps again: what came last stands.
    rows: dict[tuple[int, str], dict[str, Any]] = {}
    try:
        lines = path.read_bytes().splitlines() if path.is_file() else []
    except OSError as error:
        raise _corrupt(f"to be able to read {path}", str(error.strerror)) from error
    for number, line in enumerate(lines, start=1):
        try:
            row = parse_row(line)
        except (ValueError, RecursionError) as error:
            if number == len(lines):
                break  # still being written
            expected = f"line {number} of {path} to be a JSON object with a step and a split"
            raise _corrupt(expected, repr(line[:80])) from error
        rows.setdefault((row["step"], row["split"]), {}).update(row)
    return tuple(rows[key] for key in sorted(rows))


def parse_row(line: bytes) -> dict[str, Any]:
    """One line of a log; a `ValueError` if it is none."""
    row = json.loads(line)
    if not isinstance(row, dict) or not isinstance(row.get("split"), str):
        raise ValueError("no split")
    if type(row.get("step")) is not int or abs(row["step"]) > FURTHEST:
        raise ValueError("no step")
    return row


def _corrupt(expected: str, got: str) -> InputError:
    return InputError(f"expected {expected}, but got {got}. Try leaving this run out.")
