"""The table of experiments: names, and the configuration files behind them."""

from collections.abc import Iterable
from pathlib import Path

from attractor.errors import unknown
from attractor.experiments.config import ExperimentConfig, file_name
from attractor.experiments.read import read
from attractor.tables import search

EXPERIMENTS: dict[str, str] = {
    "copy-quick": "copy-quick.toml",
    "decaynet-figure-4": "decaynet-figure-4.toml",
    "decaynet-figure-4-quick": "decaynet-figure-4-quick.toml",
    "demo": "demo.toml",
    "demo-continual": "demo-continual.toml",
    "demo-optimisers": "demo-optimisers.toml",
    "incremental-cifar10": "incremental-cifar10.toml",
    "incremental-cifar100": "incremental-cifar100.toml",
    "incremental-cub200": "incremental-cub200.toml",
    "irc-figure-3": "irc-figure-3.toml",
    "irc-figure-3-quick": "irc-figure-3-quick.toml",
    "irc-figure-3-small": "irc-figure-3-small.toml",
    "m2sgd-table-5.1": "m2sgd-table-5.1.toml",
    "m2sgd-table-5.1-quick": "m2sgd-table-5.1-quick.toml",
    "m2sgd-table-5.2": "m2sgd-table-5.2.toml",
    "m2sgd-table-5.2-quick": "m2sgd-table-5.2-quick.toml",
    "mtl2l-scenario-1": "mtl2l-scenario-1.toml",
    "mtl2l-scenario-1-fashion": "mtl2l-scenario-1-fashion.toml",
    "mtl2l-scenario-1-fashion-quick": "mtl2l-scenario-1-fashion-quick.toml",
    "mtl2l-scenario-1-kmnist": "mtl2l-scenario-1-kmnist.toml",
    "mtl2l-scenario-1-kmnist-quick": "mtl2l-scenario-1-kmnist-quick.toml",
    "mtl2l-scenario-1-quick": "mtl2l-scenario-1-quick.toml",
    "mtl2l-scenario-2": "mtl2l-scenario-2.toml",
    "mtl2l-scenario-2-quick": "mtl2l-scenario-2-quick.toml",
    "permuted-mnist": "permuted-mnist.toml",
    "permuted-mnist-few": "permuted-mnist-few.toml",
    "permuted-mnist-networks": "permuted-mnist-networks.toml",
    "permuted-mnist-noise": "permuted-mnist-noise.toml",
    "permuted-mnist-rings": "permuted-mnist-rings.toml",
    "rules": "rules.toml",
}


def load(name: str, changes: Iterable[str] = ()) -> tuple[str, ExperimentConfig]:
    """An experiment of the table, or one from a TOML file of the user's, and its name."""
    if name.endswith(".toml"):
        path = Path(name)
        search(path.parent)  # for cells and the like of the user's own
        return file_name(path.stem), read(path, changes)
    if name not in EXPERIMENTS:
        raise unknown("experiment", name, EXPERIMENTS)
    return name, read(Path(__file__).parent / "configs" / EXPERIMENTS[name], changes)
