"""Single runs, for a reader who wants to see one: what it came to, and what it ran on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from attractor.report.comparing import words
from attractor.report.rounding import plain
from attractor.report.tables import Cell, shown
from attractor.results.measures import main_metric, measure
from attractor.results.numbers import MISSING, duration, is_share
from attractor.results.variants import Group
from attractor.runs.environment import segments
from attractor.runs.read import Run, is_finite


@dataclass(frozen=True)
class RunRow:
    """A run in the table of runs; ``place`` is its number among those of the chapter."""

    place: int
    variant: int
    label: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Drill:
    """The runs of a chapter: headings and rows for the table, and what the page opens for one."""

    headings: tuple[str, ...]
    rows: tuple[RunRow, ...]
    data: dict[str, Any]


def drill(groups: Sequence[Group], runs: Sequence[Run]) -> Drill:
    """Every run of a chapter. What runs share, such as an environment, is told once."""
    main = main_metric(runs)
    final = [run.test[main] for run in runs if main in run.test]
    share = is_share(measure(main, runs), final)
    environments: dict[str, int] = {}
    rows: list[RunRow] = []
    opened: list[dict[str, Any]] = []
    for variant, group in enumerate(groups):
        for run in sorted(group.runs, key=lambda one: one.seed):
            told = _environment(run)
            number = environments.setdefault("\n".join(told), len(environments))
            value = run.test.get(main)
            said = run.outcome.get("seconds")
            seconds = float(said) if said is not None and is_finite(said) else None
            cells = (
                Cell(str(run.seed), float(run.seed)),
                Cell(run.status),
                Cell(plain(value, share), value),
                Cell(duration(seconds), seconds),
            )
            rows.append(RunRow(len(rows), variant, group.label, cells))
            opened.append(
                {
                    "label": group.label,
                    "variant": variant,
                    "seed": run.seed,
                    "folder": run.folder.name,
                    "environment": number,
                    "measures": [[words(name), plain(one)] for name, one in run.test.items()],
                    "reason": str(run.outcome.get("reason") or ""),
                }
            )
    name = words(main)
    headings = ("Seed", "Status", f"{name}, %" if share else name, "Time")
    listed = [text.split("\n") for text in environments]
    return Drill(headings, tuple(rows), {"runs": opened, "environments": listed})


def _environment(run: Run) -> list[str]:
    found = {
        key: shown(value)
        for segment in segments(run.environment)
        for key, value in segment.items()
        if key not in ("step", "started", "command")
    }
    return [f"{key}: {value}" for key, value in sorted(found.items())] or [MISSING]
