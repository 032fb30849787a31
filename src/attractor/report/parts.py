"""What each kind of process contributes to a chapter: curves, marks and maps of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from attractor.report.figures import Figure
from attractor.report.levels import is_of_levels, level_curves, without_means
from attractor.report.streams import boundaries, matrices
from attractor.results.variants import Group
from attractor.runs.read import Run


@dataclass(frozen=True)
class Parts:
    """What a kind of process contributes; where its runs tell nothing, nothing is shown.

    Args:
        curves: figures of its own, before the learning curves.
        ends: the steps at which tasks end, which are marked in the learning curves.
        maps: of the accuracy on each task or level after each.
        of: what a map has rows for.
        each: for what the steps of the configuration are, in words, if not for a whole run.
        counts: what is logged and not drawn, since it is no measure of learning.
        rows: a run with those of its rows that belong into a curve.
    """

    curves: Callable[[Sequence[Group]], list[Figure]] = lambda groups: []
    ends: Callable[[Sequence[Run]], list[int]] = lambda runs: []
    maps: Callable[[Sequence[Group]], list[Figure]] = lambda groups: []
    of: str = "task"
    each: str = ""
    counts: tuple[str, ...] = ()
    rows: Callable[[Run], Run] = lambda run: run


PARTS: dict[str, Parts] = {
    "supervised": Parts(),
    "continual": Parts(ends=boundaries, maps=matrices),
    "lifelong": Parts(
        curves=level_curves,
        maps=matrices,
        of="level",
        each=" at each level",
        counts=("passed", "parameters", "level"),
        rows=without_means,
    ),
}
"""By the kind of an experiment."""


def parts_of(runs: Sequence[Run]) -> Parts:
    """Those of the kind of runs; of a user's own kind, those that fit what its runs tell."""
    kind = str(runs[0].config.get("kind"))
    if kind in PARTS:
        return PARTS[kind]
    return PARTS["lifelong" if any(is_of_levels(run) for run in runs) else "continual"]
