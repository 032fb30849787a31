"""Experiments: configured in TOML, run, killed and resumed."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from attractor.experiments.files import EXPERIMENTS as EXPERIMENTS

if TYPE_CHECKING:
    from attractor.experiments.config import ExperimentConfig as ExperimentConfig
    from attractor.experiments.config import RunConfig as RunConfig
    from attractor.experiments.table import load as load
    from attractor.experiments.train import run_all as run_all
    from attractor.experiments.train import runs_of as runs_of

_PLACES = {
    "ExperimentConfig": "config",
    "RunConfig": "config",
    "load": "table",
    "run_all": "train",
    "runs_of": "train",
}


def __getattr__(name: str) -> Any:
    # what checks and runs is imported when it is first used: a list of names is shown at once
    if name in _PLACES:
        return getattr(import_module(f"attractor.experiments.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'attractor.experiments' has no attribute {name!r}")
