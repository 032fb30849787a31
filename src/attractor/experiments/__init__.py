"""Experiments: configured in TOML, run, killed and resumed."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from attractor.experiments.config import ExperimentConfig as ExperimentConfig
from attractor.experiments.config import RunConfig as RunConfig
from attractor.experiments.table import EXPERIMENTS as EXPERIMENTS
from attractor.experiments.table import load as load

if TYPE_CHECKING:
    from attractor.experiments.train import run_all as run_all
    from attractor.experiments.train import runs_of as runs_of


def __getattr__(name: str) -> Any:
    # what runs is imported when it is first used: a list of names is shown at once
    if name in ("run_all", "runs_of"):
        return getattr(import_module("attractor.experiments.train"), name)
    raise AttributeError(f"module 'attractor.experiments' has no attribute {name!r}")
