"""A benchmark of optimisers as tables of text, for a terminal or a page."""

import math
from collections.abc import Sequence

from attractor.estimates import Estimate
from attractor.results.standing import FACTORS, Outcome, Standing, beside, profile, ratios, times
from attractor.results.table import MISSING, Table

RIVAL = "adam-cosine"
"""Beside which every optimiser is counted."""
TIMED_BY = "adam"
"""Whose time of an update is 1."""


def tables(standing: Standing) -> list[Table]:
    """Performance profiles, one table for each task, and where it ran."""
    machine = [list(pair) for pair in standing.machine.items()]
    tasks = dict.fromkeys(task for task, _ in standing.places)
    return [
        profiles(standing),
        *(_of_task(standing, task) for task in tasks),
        Table("machine", ["what", "found"], machine),
    ]


def profiles(standing: Standing) -> Table:
    """The share of places within factors of the best, counts beside the rival, and times."""
    shares, took = profile(standing), times(standing, TIMED_BY)
    ranked = sorted(shares, key=lambda name: (-sum(shares[name]), name))
    rows = [
        [
            name,
            *(f"{100 * share:.0f}" for share in shares[name]),
            *_beside(standing, name),
            f"{took[name]:.2f}" if name in took else MISSING,
        ]
        for name in ranked
    ]
    count = len(standing.places)
    places = f"{count} place{'s' * (count != 1)} (task and {_unit(standing)})"
    title = (
        f"{'quick ' if standing.quick else ''}benchmark, {places}, {_seeds(standing)}: share of "
        "places (%) within a factor of the lowest loss"
    )
    within = [f"{factor:g}" for factor in FACTORS]
    last = [f"below {RIVAL}", "at worst, times", f"time of an update, times {TIMED_BY}"]
    return Table(title, ["optimiser", *within, *last], rows)


def losses(standing: Standing) -> Table:
    """Mean losses with intervals: a row for each optimiser, a column for each place."""
    by, places, over = standing.by(), standing.places, ratios(standing)

    def cell(one: Outcome | None) -> str:
        if one is None:
            return MISSING
        text = shown(one.estimate)
        return f"**{text}**" if over[one.contender][one.at] == 1 else text

    rows = [[name, *(cell(by.get((name, at))) for at in places)] for name in standing.contenders]
    title = f"held-out loss, mean ± half of its 95% interval over {_seeds(standing)}"
    if standing.by_time:
        title += f", after {_unit(standing)}"
    return Table(title, ["optimiser", *(f"{task}, {n:,}" for task, n in places)], rows)


def markdown(standing: Standing) -> str:
    """Profiles and losses for a page of documentation."""
    parts = [one.markdown() for one in (profiles(standing), losses(standing))]
    parts += [f"Left out: {note}" for note in standing.left_out]
    return "\n\n".join(parts) + "\n"


def shown(found: Estimate) -> str:
    """A mean and its interval, with as many digits as are known.

    Example:
        >>> shown(Estimate((0.1, 0.2), 0.15234, 0.15, 0.0031)), shown(Estimate((), 12.5, 12.5, 1.0))
        ('0.1523 ± 0.0031', '12.5 ± 1.0')
        >>> shown(Estimate((float("inf"),), float("inf"), 0.0, None))
        'diverged'
    """
    if not math.isfinite(found.mean):
        return "diverged"
    if not found.half_width:
        return f"{found.mean:.4g}"
    places = 1 - math.floor(math.log10(found.half_width))
    if places > 6:
        return f"{found.mean:.3g} ± {found.half_width:.2g}"
    places = max(0, places)
    return f"{found.mean:.{places}f} ± {found.half_width:.{places}f}"


def _of_task(standing: Standing, task: str) -> Table:
    by = standing.by()
    horizons = [horizon for name, horizon in standing.places if name == task]
    columns = ["optimiser"]
    for horizon in horizons:
        columns += [f"loss after {horizon:,}", "rate", "ms"]
    rows = []
    for name in standing.contenders:
        row = [name]
        for horizon in horizons:
            row += _cells(by.get((name, (task, horizon))))
        rows.append(row)
    return Table(f"{task}: {standing.tasks.get(task, task)}", columns, rows)


def _cells(one: Outcome | None) -> Sequence[str]:
    if one is None:
        return [MISSING] * 3
    rate = MISSING if one.rate is None else f"{one.rate:g}"
    return [shown(one.estimate), rate, f"{1e3 * one.seconds:.2f}"]


def _beside(standing: Standing, name: str) -> list[str]:
    if name == RIVAL or RIVAL not in standing.contenders:
        return [MISSING, MISSING]
    found = beside(standing, name, RIVAL)
    worst = f"{found.worst:.2f}" if found.worst < math.inf else "diverged"
    return [f"{found.lower} of {found.places}", worst]


def _unit(standing: Standing) -> str:
    return f"the time of so many updates of {RIVAL}" if standing.by_time else "updates"


def _seeds(standing: Standing) -> str:
    count = len(standing.seeds)
    return f"{count} seed{'s' if count > 1 else ''}"
