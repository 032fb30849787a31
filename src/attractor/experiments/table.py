"""The table of experiments: one configuration file for each."""

from collections.abc import Iterable
from pathlib import Path

from attractor.errors import unknown
from attractor.experiments.config import ExperimentConfig, file_name
from attractor.experiments.files import EXPERIMENTS as EXPERIMENTS
from attractor.experiments.read import read
from attractor.tables import search


def load(name: str, changes: Iterable[str] = ()) -> tuple[str, ExperimentConfig]:
    """An experiment of the table, or one from a TOML file of the user's, and its name."""
    if name.endswith(".toml"):
        path = Path(name)
        search(path.parent)  # for cells and the like of the user's own
        return file_name(path.stem), read(path, changes)
    if name not in EXPERIMENTS:
        raise unknown("experiment", name, EXPERIMENTS)
    return name, read(EXPERIMENTS[name], changes)
