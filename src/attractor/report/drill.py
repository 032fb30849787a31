"""Single runs, for a reader who wants to see one: what it came to, and what it ran on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from attractor.report.rounding import alike, plain
from attractor.report.tables import Cell, shown
from attractor.results.measures import main_metric, measure, words
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
    ordered = [(v, run) for v, group in enumerate(groups) for run in _by_seed(group)]
    values = [run.test.get(main) for _, run in ordered]
    texts = alike(values, share)
    rows: list[RunRow] = []
    opened: list[dict[str, Any]] = []
    for (variant, run), value, text in zip(ordered, values, texts, strict=True):
        label = groups[variant].label
        told = _environment(run)
        number = environments.setdefault("\n".join(told), len(environments))
        said = run.outcome.get("seconds")
        seconds = float(said) if said is not None and is_finite(said) else None
        cells = (
            Cell(str(run.seed), float(run.seed)),
            Cell(run.status),
            Cell(text, value),
            Cell(duration(seconds), seconds),
        )
        rows.append(RunRow(len(rows), variant, label, cells))
        opened.append(
            {
                "label": label,
                "variant": variant,
                "seed": run.seed,
                "folder": run.folder.name,
                "environment": number,
                "measures": [[words(name), plain(one)] for name, one in run.test.items()],
                "reason": str(run.outcome.get("reason") or ""),
            }
        )
    name = words(main)
    name = f"{name[0].upper()}{name[1:]}"
    headings = ("Seed", "Status", f"{name}, %" if share else name, "Time")
    listed = [text.split("\n") for text in environments]
    return Drill(headings, tuple(rows), {"runs": opened, "environments": listed})


def _by_seed(group: Group) -> list[Run]:
    return sorted(group.runs, key=lambda one: one.seed)


def _environment(run: Run) -> list[str]:
    found = {
        key: shown(value)
        for segment in segments(run.environment)
        for key, value in segment.items()
        if key not in ("step", "started", "command")
    }
    return [f"{key}: {value}" for key, value in sorted(found.items())] or [MISSING]
