"""What a page says about one experiment at one budget, worked out before it is laid out."""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attractor.report.cautions import cautions, otherwise, ranges
from attractor.report.claims import HEADINGS, Told
from attractor.report.comparing import findings, headline, listed, standing
from attractor.report.drill import Drill, drill
from attractor.report.figures import ROOM, Figure, learning_curves
from attractor.report.grid import grid
from attractor.report.levels import ranked_by_levels
from attractor.report.order import ordered
from attractor.report.parts import Parts, parts_of
from attractor.report.spread import spread
from attractor.report.streams import marked
from attractor.report.tables import (
    ResultTable,
    common_settings,
    environment,
    own_settings,
    result_table,
    shown,
    swatches,
)
from attractor.results.numbers import MISSING, count
from attractor.results.variants import Group, settings, variants
from attractor.runs.read import Run
from attractor.runs.repeatable import repeatable

if TYPE_CHECKING:
    from attractor.report.inside import Inside

MANY = 4
"""Variants whose intervals can be told apart, however wide they are."""
ENOUGH = 5
"""Seeds from which on intervals are narrow enough to be shown for more."""


@dataclass(frozen=True)
class Chapter:
    """All that the template needs to show one experiment at one budget.

    ``leader`` is the variant that is shown to be ahead of all others, if there is one.
    """

    title: str
    description: str
    experiment: str
    budget: str
    facts: list[tuple[str, str]]
    headline: str
    leader: str | None
    findings: list[str]
    warnings: list[str]
    failures: list[Run]
    results: ResultTable
    claims: Sequence[Told]
    grid: Figure | None
    figures: list[Figure]
    matrices: list[Figure]
    inside: "Sequence[Inside]"
    drill: Drill
    parts: Parts
    bands: bool
    swatches: list[dict[str, str]]
    common: dict[str, dict[str, str]]
    own: tuple[list[str], list[tuple[str, list[str]]]]
    configs: list[tuple[str, str, str]]
    environment: list[tuple[str, list[tuple[str, int]]]]
    commands: list[str]

    @property
    def sections(self) -> list[tuple[str, str]]:
        """Names and headings of the parts that there are, for the contents."""
        there: list[tuple[str, str, object]] = [
            ("results", "Results", True),
            ("claims", "Published claims", self.claims),
            ("grid", "Results by setting", self.grid),
            ("curves", "Learning curves", self.figures),
            ("matrix", f"Accuracy by {self.parts.of}", self.matrices),
            ("inside", "Inside the networks", self.inside),
            ("runs", "Runs", True),
            ("configuration", "Configuration", True),
            ("environment", "Environment", self.environment),
            ("repeat", "How to repeat this", True),
        ]
        return [(name, text) for name, text, shown in there if shown]

    @property
    def looked_into(self) -> str:
        """Into how many variants the page looks, and what is left out; empty if nothing is."""
        into = {one.label for one in self.inside}
        left = [key["label"] for key in self.swatches if key["label"] not in into]
        if not left:
            return ""
        return (
            f"{len(into)} of {len(self.swatches)} variants, the best first; "
            f"not looked into: {listed(left)}."
        )

    @property
    def claim_headings(self) -> Sequence[str]:
        return HEADINGS

    @property
    def drawn(self) -> list[Figure]:
        """Every figure, in the order of the page."""
        first = [self.grid] if self.grid else []
        inside = [s.figure for one in self.inside for s in one.seen]
        return [*first, *self.figures, *self.matrices, *inside]


def chapter(
    runs: Sequence[Run],
    inside: "Sequence[Inside]" = (),
    claims: Sequence[Told] = (),
    room: float = ROOM,
) -> Chapter:
    """Work out the chapter for runs of one experiment at one budget.

    Args:
        runs: those of the chapter.
        inside: what is seen in their networks.
        claims: of the documents, on these runs.
        room: the bytes that learning curves may take.
    """
    runs = ordered([ranked_by_levels(run) for run in runs])
    first = runs[0]
    stand = standing(runs, claims)
    groups = variants(runs)
    parts = parts_of(runs)
    ends = parts.ends(runs)
    bands = not crowded(groups)
    logged = [parts.rows(run) for run in runs]
    curves = [marked(one, ends) for one in learning_curves(logged, parts.counts, room)]
    figures = parts.curves(groups) + curves
    if (violins := spread(runs, groups)) is not None:
        figures.append(violins)
    for trace in (trace for one in figures for trace in one.traces):
        if trace["meta"]["kind"] == "band":
            trace["visible"] = bands
    return Chapter(
        title=str(first.config.get("title") or first.experiment),
        description=_description(runs, groups),
        experiment=first.experiment,
        budget=first.budget,
        facts=_facts(runs, groups, len(ends)),
        headline=headline(runs, claims),
        leader=stand.best if stand.proven else None,
        findings=findings(runs, claims),
        warnings=cautions(runs, groups),
        failures=[run for run in runs if run.status == "failed"],
        results=result_table(runs, claims),
        claims=claims,
        grid=grid(runs, groups),
        figures=figures,
        matrices=parts.maps(groups),
        inside=inside,
        drill=drill(groups, runs),
        parts=parts,
        bands=bands,
        swatches=swatches(groups),
        common=common_settings(runs),
        own=own_settings(groups),
        configs=[
            (v.label, ranges(run.seed for run in v.runs), repeatable(v.runs[0])) for v in groups
        ],
        environment=environment(runs),
        commands=_commands(runs),
    )


def _description(runs: Sequence[Run], groups: Sequence[Group]) -> str:
    """What the experiment says of itself, and what is otherwise in these runs."""
    own = str(runs[0].config.get("description", "")).strip()
    return " ".join(filter(None, (own, otherwise(groups))))


def crowded(groups: Sequence[Group]) -> bool:
    """Whether intervals over few seeds, which are wide, would bury the lines of many variants."""
    return len(groups) > MANY and max(len(group.runs) for group in groups) < ENOUGH


def _facts(runs: Sequence[Run], groups: Sequence[Group], tasks: int) -> list[tuple[str, str]]:
    steps = {shown(settings(run).get("train.steps")) for run in runs}
    task = {shown(settings(run).get("task.name")) for run in runs}
    # Only what the runs themselves say: the page must not depend on when it is made.
    days = sorted(
        str(when)[:10]
        for run in runs
        for when in (run.environment.get("started"), run.outcome.get("finished"))
        if when
    )
    facts = [("Experiment", runs[0].experiment)]
    facts += [("Task", name) for name in task if name != MISSING and len(task) == 1]
    facts += [("Budget", runs[0].budget), ("Variants", str(len(groups)))]
    facts += [("Runs", _run_counts(runs)), ("Seeds", ranges({run.seed for run in runs}))]
    each = f" for each of {tasks} tasks" if tasks else parts_of(runs).each
    facts += [
        ("Steps", f"{count(int(n))}{each}") for n in steps if n.isdecimal() and len(steps) == 1
    ]
    if days:
        facts.append(("When", days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"))
    return facts


def _commands(runs: Sequence[Run]) -> list[str]:
    recorded = dict.fromkeys(str(run.environment.get("command") or "") for run in runs)
    recorded.pop("", None)
    return list(recorded) or [f"attractor run {shlex.quote(runs[0].experiment)}"]


def _run_counts(runs: Sequence[Run]) -> str:
    counts = Counter(run.status for run in runs)
    some = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
    return str(len(runs)) if counts["done"] == len(runs) else f"{len(runs)} ({some})"
