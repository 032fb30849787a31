"""Whether runs are those that attractor's experiment of their name has today, and what differs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from attractor.errors import InputError
from attractor.experiments.config import RunConfig, validated
from attractor.experiments.files import EXPERIMENTS
from attractor.experiments.table import load
from attractor.experiments.train import runs_of
from attractor.results.variants import Group, differing, settings
from attractor.runs.read import Run

PLACES = {"version", "train.device", "train.threads", "train.checkpoint_every"}
"""Settings of where a run is done and how it is kept."""


def place(run: Run) -> int:
    """Which variant of an experiment's file a run is of; those that it does not have come last."""
    known = _today(run.experiment)
    own = _own_label(run)
    return len(known) if own is None else list(known).index(own)


def changed(run: Run) -> list[str]:
    """The settings in which a run differs from its variant of today's configuration.

    Seeds, devices and threads do not count. Empty for experiments and variants of a user's own.
    """
    own = _own_label(run)
    if own is None:
        return []
    today = _today(run.experiment)[own]
    tables = [_settings(run, _completed(run, type(today))), _settings(run, _dumped(today))]
    return [key for key in differing(tables) if key not in PLACES]


def changes(groups: Sequence[Group]) -> Mapping[str, list[str]]:
    """By label, what differs of each variant whose runs are not as configured today."""
    found = {
        group.label: list(dict.fromkeys(key for run in group.runs for key in changed(run)))
        for group in groups
    }
    return {label: keys for label, keys in found.items() if keys}


@cache
def _today(experiment: str) -> dict[str, RunConfig]:
    if experiment not in EXPERIMENTS:
        return {}
    return {one.label: one for one in runs_of(*load(experiment, ["seeds=[0]"]))}


def _own_label(run: Run) -> str | None:
    """The variant that a run is of: `--set` adds to a label what it overrules."""
    known = _today(run.experiment)
    if run.label in known:
        return run.label
    return next((label for label in known if run.label.startswith(f"{label} (")), None)


def _completed(run: Run, kind: type[RunConfig]) -> dict[str, Any]:
    """A run's configuration with the settings that came later; as it is, if it is none of today."""
    try:
        return _dumped(validated(kind, run.config, "config.toml"))
    except InputError:
        return run.config


def _dumped(config: RunConfig) -> dict[str, Any]:
    return config.model_dump(exclude_none=True)


def _settings(run: Run, config: dict[str, Any]) -> dict[str, Any]:
    return settings(replace(run, config=config))
