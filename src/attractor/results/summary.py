"""One table of what runs came to: a row for each variant, with intervals over seeds."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, median

from attractor.estimates import Estimate, estimate
from attractor.results.measures import main_metric, measure
from attractor.results.variants import Group, variants
from attractor.runs.read import Run, is_finite


@dataclass(frozen=True)
class SummaryRow:
    """One variant's line in the table of results.

    ``estimates`` holds every test measure over the ``n`` seeds that are done, ``metric`` names
    the one that ranks, and ``rank`` is ``None`` for a variant without it. ``seconds`` is the
    median over the seeds that are done.
    """

    experiment: str
    budget: str
    label: str
    metric: str
    rank: int | None
    n: int
    failed: int
    unfinished: int
    parameters: int | None
    seconds: float | None
    estimates: dict[str, Estimate]

    @property
    def estimate(self) -> Estimate | None:
        return self.estimates.get(self.metric)

    @property
    def status(self) -> str:
        """In words: ``done``, or such as ``2 done, 1 failed``."""
        counts = {"done": self.n, "failed": self.failed, "unfinished": self.unfinished}
        some = {name: count for name, count in counts.items() if count}
        if len(some) == 1:
            return next(iter(some))
        return ", ".join(f"{count} {name}" for name, count in some.items())


def summary(runs: Iterable[Run]) -> list[SummaryRow]:
    """One row per variant, the best first within its experiment and budget."""
    chapters: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        chapters.setdefault((run.experiment, run.budget), []).append(run)
    return [row for chapter in chapters.values() for row in _ranked(chapter)]


def _ranked(runs: list[Run]) -> list[SummaryRow]:
    metric = main_metric(runs)
    sign = -1 if measure(metric, runs).goal == "max" else 1
    means: dict[str, float] = {}
    for variant in variants(runs):
        if values := [run.test[metric] for run in variant.runs if metric in run.test]:
            means[variant.label] = sign * fmean(values)
    # Equal means share a rank; a variant without a number comes last and has none.
    order = sorted(variants(runs), key=lambda v: means.get(v.label, math.inf))
    ranks = {name: 1 + sum(m < mean for m in means.values()) for name, mean in means.items()}
    return [_summary_row(v, metric, ranks.get(v.label)) for v in order]


def _summary_row(variant: Group, metric: str, rank: int | None) -> SummaryRow:
    done = [run for run in variant.runs if run.status == "done"]
    names = dict.fromkeys(name for run in done for name in run.test)
    seconds = [run.outcome["seconds"] for run in done if is_finite(run.outcome.get("seconds"))]
    sizes = [size for run in done if isinstance(size := run.outcome.get("parameters"), int)]
    return SummaryRow(
        experiment=variant.experiment,
        budget=variant.budget,
        label=variant.label,
        metric=metric,
        rank=rank,
        n=len(done),
        failed=sum(run.status == "failed" for run in variant.runs),
        unfinished=sum(run.status == "unfinished" for run in variant.runs),
        parameters=sizes[0] if sizes else None,
        seconds=median(seconds) if seconds else None,
        estimates={
            name: estimate([run.test[name] for run in done if name in run.test]) for name in names
        },
    )
