"""How runs are told apart by name: by their label, what differs under one label, and their seed."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attractor.experiments.changes import flat
from attractor.experiments.config import RunConfig

# What names a run; all the rest of its configuration are settings.
_NAMES = {"experiment", "title", "description", "budget", "label", "seed"}


@dataclass(frozen=True)
class Names:
    """Names a run so that no other of the same call has that name.

    Args:
        apart: by experiment and label, the keys that differ between the runs that have both.
        several: whether there are several experiments.

    Example:
        >>> from attractor.experiments.grid import axes, sweep_runs
        >>> runs = sweep_runs("demo", axes(["optimiser.lr=0.1,0.2"]), ["seeds=[0]"], ["LSTM"])
        >>> [Names.of(runs)(run) for run in runs]
        ['LSTM (optimiser.lr=0.1), seed 0', 'LSTM (optimiser.lr=0.2), seed 0']
    """

    apart: dict[tuple[str, str], tuple[str, ...]]
    several: bool = False

    @classmethod
    def of(cls, configs: Iterable[RunConfig]) -> "Names":
        groups: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
        for config in configs:
            table = _settings(config)
            groups.setdefault((config.experiment, config.label), {})[exactly(table)] = table
        apart = {
            names: tuple(differing(list(tables.values())))
            for names, tables in groups.items()
            if len(tables) > 1
        }
        return cls(apart, len({experiment for experiment, _ in groups}) > 1)

    def variant(self, config: RunConfig) -> str:
        """The name of a run without its seed."""
        keys = self.apart.get((config.experiment, config.label), ())
        label = labelled(config.label, keys, _settings(config) if keys else {})
        return f"{config.experiment}: {label}" if self.several else label

    def __call__(self, config: RunConfig) -> str:
        return f"{self.variant(config)}, seed {config.seed}"


def settings(content: Mapping[str, Any]) -> dict[str, Any]:
    """Everything in a configuration but the run's names and seed, under dotted keys."""
    return flat({key: value for key, value in content.items() if key not in _NAMES})


def differing(tables: Sequence[Mapping[str, Any]]) -> list[str]:
    """The keys whose values are not the same in all tables, in order of appearance."""
    keys = dict.fromkeys(key for table in tables for key in table)
    return [key for key in keys if len({exactly(table.get(key)) for table in tables}) > 1]


def labelled(label: str, keys: Sequence[str], values: Mapping[str, Any]) -> str:
    """A label with the settings that tell it from others.

    Example:
        >>> labelled("LSTM", ["optimiser.lr", "train.clip"], {"optimiser.lr": 0.1})
        'LSTM (optimiser.lr=0.1, train.clip=none)'
    """
    what = ", ".join(f"{key}={values.get(key, 'none')}" for key in keys)
    return f"{label} ({what})" if what else label


def exactly(value: object) -> str:
    """A value as text that only equal values share; so NaN is equal to itself."""
    return json.dumps(value, sort_keys=True, default=str)


def _settings(config: RunConfig) -> dict[str, Any]:
    return settings(config.model_dump(exclude_none=True))
