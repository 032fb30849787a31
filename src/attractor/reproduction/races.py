"""Who solves a task first: tables of experiments whose runs end once they have solved theirs."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from statistics import median

from attractor.experiments.table import load
from attractor.reproduction.outcomes import Outcomes, stored
from attractor.results.survival import Ending, Survival, fate, kaplan_meier, log_rank, peak
from attractor.results.table import markdown
from attractor.tables import make
from attractor.tasks import TASKS, CopyMemory

COLUMNS = (
    "solved",
    "median update (first to last)",
    "p",
    "exploded on the way, at least (largest loss)",
    "ended so",
    "stand still",
    "on their way",
)


@dataclass(frozen=True)
class Race:
    """The variants of an experiment, in the order in which they got there.

    Args:
        experiment: whose stored runs it shows.
        beside: the variant that the others are tested against.
        rows: by label, the name that is shown; all variants that were run if it is empty.
    """

    experiment: str
    beside: str
    rows: dict[str, str] = field(default_factory=dict)


RACES: dict[str, Race] = {
    "copy-race": Race(
        "copy",
        "NRU",
        {
            "EURNN": "EURNN",
            "NRU": "NRU, Adam, norm of at most 1 (the thesis)",
            "NRU, AMSGrad": "NRU, AMSGrad, 0.5",
            "NRU of the code": "NRU of the code, Adam, 1",
            "NRU of the code, AMSGrad": "NRU of the code, AMSGrad, 0.5",
            "NRU, steady": "NRU, steady",
            "GORU": "GORU",
            "JANET": "JANET, chrono",
            "LSTM, chrono": "LSTM, chrono",
            "GRU": "GRU",
        },
    ),
    "copy-quick-race": Race("copy-quick", "NRU"),
}
"""By the name of a generated part, what it shows."""


def curves(race: Race) -> dict[str, Survival]:
    """By variant, how many of its stored runs have not solved the task by each step."""
    found, steps = stored(race.experiment), budgets(race.experiment)
    labels = race.rows or steps
    each = {label: _curve(found, race.experiment, label, steps[label]) for label in labels}
    return {label: one for label, one in each.items() if one.n}


def named(race: Race, label: str) -> str:
    """The name of a variant that is shown, with its budget where others have a larger one."""
    steps = budgets(race.experiment)
    shorter = f", at most {steps[label]:,}" if steps[label] < max(steps.values()) else ""
    return race.rows.get(label, label) + shorter


def raced(name: str) -> str:
    """A race as a table in Markdown, the quickest first, and a sentence that says what it rests on.

    Args:
        name: a key of ``RACES``.
    """
    race = RACES[name]
    found, each = stored(race.experiment), curves(race)
    unit = _symbol(race.experiment)
    first = each[race.beside]
    rows = []
    for label, one in sorted(each.items(), key=lambda item: _order(item[1])):
        p = "" if label == race.beside else f"{log_rank(first, one):.1g}"
        fates = _fates(found, race.experiment, label, unit)
        rows.append([named(race, label), f"{len(one.at)} of {one.n}", _when(one), p, *fates])
    seeds = {one.n for one in each.values()}
    count = f"{min(seeds)} to {max(seeds)}" if len(seeds) > 1 else f"{max(seeds)}"
    told = (
        f"`attractor run {race.experiment}`, {count} seeds, at most "
        f"{max(budgets(race.experiment).values()):,} updates; p of a log-rank test beside "
        f"{named(race, race.beside)}. "
        f"A symbol is worth {unit:.4f} nats."
    )
    return f"{markdown(('network', *COLUMNS), rows, right=(1, 3, 4))}\n\n{told}"


def _curve(found: Outcomes, experiment: str, label: str, steps: int) -> Survival:
    solved = found.final(experiment, label, "solved")
    at = found.final(experiment, label, "steps_to_solve")
    there = sorted(int(at[seed]) for seed, value in solved.items() if value)
    return kaplan_meier(there, [steps] * (len(solved) - len(there)), label=label)


def _order(one: Survival) -> tuple[float, float]:
    """By the share that solved it, then by when half of those had."""
    return -len(one.at) / one.n, median(one.at) if one.at else 0.0


def _when(one: Survival) -> str:
    if not one.at:
        return "-"
    middle = "-" if one.median is None else f"{one.median:,}"
    return f"{middle} ({one.at[0]:,} to {one.at[-1]:,})"


def _fates(found: Outcomes, experiment: str, label: str, unit: float) -> list[str]:
    """How many exploded, on the way and for good, where others stand still, in symbols, and the
    losses of the rest."""
    ends = _endings(found, experiment, label, unit)
    peaks = _peaks(found, experiment, label)
    still = Counter(one.multiple for one in ends if one.fate == "stands still")
    moving = sorted(one.loss for one in ends if one.fate == "on its way")
    exploded = sum(one.fate == "exploded" for one in ends)
    return [
        f"{len(peaks)} ({max(peaks):.2g})" if peaks else "",
        str(exploded or ""),
        ", ".join(f"{count} at {symbols}" for symbols, count in sorted(still.items())),
        f"{len(moving)}, at {moving[0]:.3f} to {moving[-1]:.3f}" if moving else "",
    ]


def _endings(found: Outcomes, experiment: str, label: str, unit: float) -> list[Ending]:
    solved = found.final(experiment, label, "solved")
    failed = found.diverged(experiment, label)
    logged = found.series(experiment, label, "loss", "valid")
    return [
        fate(logged.get(seed, []), unit, solved=bool(value), failed=seed in failed)
        for seed, value in solved.items()
    ]


def _peaks(found: Outcomes, experiment: str, label: str) -> list[float]:
    """The largest loss of each run that exploded on its way, of those that were kept."""
    what = (experiment, label, "loss", "valid")
    most = found.best(*what, highest=True)
    each = (peak([losses[0], most[seed]]) for seed, losses in found.series(*what).items())
    return [one for one in each if one is not None]


@cache
def budgets(experiment: str) -> dict[str, int]:
    """By variant of an experiment, how many updates a run of it has at most."""
    variants = load(experiment)[1].variants()
    return {label: int(tables["train"]["steps"]) for label, tables in variants.items()}


def _symbol(experiment: str) -> float:
    """The loss of a network that keeps all symbols but one."""
    task: CopyMemory = make("task", TASKS, load(experiment)[1].tables["task"])
    return task.baseline / task.length
