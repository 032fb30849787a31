"""Runs that differ by their seed alone.

Runs of other experiments, budgets or settings are never averaged together, even if they carry the
same label.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from attractor.errors import InputError
from attractor.experiments import naming
from attractor.experiments.naming import differing as differing
from attractor.experiments.naming import exactly, labelled
from attractor.runs.read import Run


@dataclass(frozen=True)
class Group:
    """The runs that differ by their seed alone. Labels are unique in an experiment and budget."""

    experiment: str
    budget: str
    label: str
    runs: tuple[Run, ...]


def variants(runs: Iterable[Run]) -> list[Group]:
    """Group runs that differ by their seed alone.

    Where one label covers several settings, what differs is added to it, so that
    ``LSTM`` becomes ``LSTM (optimiser.lr=0.01)`` and ``LSTM (optimiser.lr=0.001)``.
    """
    named: dict[tuple[str, str, str], dict[str, list[Run]]] = {}
    for run in runs:
        same_name = named.setdefault((run.experiment, run.budget, run.label), {})
        same_name.setdefault(exactly(settings(run)), []).append(run)
    result = []
    for (experiment, budget, label), groups in named.items():
        each = [settings(group[0]) for group in groups.values()]
        keys = differing(each)
        for group, values in zip(groups.values(), each, strict=True):
            _check_seeds(label, group)
            name = labelled(label, keys, values)
            result.append(Group(experiment, budget, name, tuple(group)))
    return result


def settings(run: Run) -> dict[str, Any]:
    """Everything in the configuration but the run's names and seed, under dotted keys."""
    return naming.settings(run.config)


def _check_seeds(label: str, runs: Sequence[Run]) -> None:
    seen: dict[int, Run] = {}
    for run in runs:
        # A copy counted as another seed would make the interval too narrow.
        if other := seen.get(run.seed):
            raise InputError(
                f"expected one run of {label!r} per seed, but got two for seed {run.seed}: "
                f"{other.folder} and {run.folder}. Try leaving one of these folders out."
            )
        seen[run.seed] = run
