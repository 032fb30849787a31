"""Experiments: configured in TOML, run, killed, resumed, and read back."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from attractor.experiments.config import ExperimentConfig as ExperimentConfig
from attractor.experiments.config import RunConfig as RunConfig
from attractor.experiments.table import EXPERIMENTS as EXPERIMENTS
from attractor.experiments.table import load as load

if TYPE_CHECKING:
    from attractor.experiments.results import summary as summary
    from attractor.experiments.saved import load_runs as load_runs
    from attractor.experiments.train import run_all as run_all

_LATER = {"run_all": "train", "summary": "results", "load_runs": "saved"}


def __getattr__(name: str) -> Any:
    # what runs and reads runs is imported when it is first used: a list of names is shown at once
    if name in _LATER:
        return getattr(import_module(f"attractor.experiments.{_LATER[name]}"), name)
    raise AttributeError(f"module 'attractor.experiments' has no attribute {name!r}")
