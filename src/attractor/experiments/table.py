"""The table of experiments: names, and the configuration files behind them."""

from collections.abc import Iterable
from pathlib import Path

from attractor.errors import unknown
from attractor.experiments.config import ExperimentConfig
from attractor.experiments.kinds import read

EXPERIMENTS: dict[str, str] = {
    "copy-quick": "copy-quick.toml",
    "demo": "demo.toml",
    "permuted-mnist": "permuted-mnist.toml",
    "permuted-mnist-few": "permuted-mnist-few.toml",
    "permuted-mnist-networks": "permuted-mnist-networks.toml",
    "permuted-mnist-noise": "permuted-mnist-noise.toml",
    "permuted-mnist-rings": "permuted-mnist-rings.toml",
}


def load(name: str, changes: Iterable[str] = ()) -> tuple[str, ExperimentConfig]:
    """An experiment of the table, or one from a TOML file of the user's, and its name."""
    if name.endswith(".toml"):
        return Path(name).stem, read(Path(name), changes)
    if name not in EXPERIMENTS:
        raise unknown("experiment", name, EXPERIMENTS)
    return name, read(Path(__file__).parent / "configs" / EXPERIMENTS[name], changes)
