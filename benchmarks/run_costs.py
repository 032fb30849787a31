"""What runs cost, for costs.toml: minutes of one core, from the process time of first updates.

    python benchmarks/run_costs.py psmnist ntm-copy

A variant whose rule is meta-trained first, or which cannot be started here, is left out.
"""

import sys
import tempfile
from pathlib import Path
from time import process_time
from typing import Any

import torch

from attractor.errors import InputError
from attractor.experiments.table import load
from attractor.experiments.train import build, runs_of
from attractor.runs.drive import Context
from attractor.training.process import Diverged

SECONDS = 3.0
"""Of process time for the updates of a variant, or one update more."""

WARM = 2
"""Updates that do not count."""


def minutes(config: Any, folder: Path) -> float:
    """Of one run, if every update took what the first ones do; evaluations are left out."""
    work = build(config, Context(None, folder, lambda: False))
    if work.step < 0:
        raise InputError("its rule is meta-trained first")
    total = config.train.steps
    for _ in range(WARM):
        work.advance()
    first, since = work.step, process_time()
    while process_time() - since < SECONDS:
        work.advance()
    return (process_time() - since) / (work.step - first) * total / 60


def main() -> None:
    torch.set_num_threads(1)
    for name in sys.argv[1:]:
        _, experiment = load(name)
        seeds = len(experiment.seeds)
        _, one = load(name, ["seeds=[0]"])
        print(f'\n["{name}"]\nseeds = {seeds}', flush=True)
        found: dict[str, float] = {}
        for config in runs_of(name, one):
            try:
                with tempfile.TemporaryDirectory() as folder:
                    found[config.label] = minutes(config, Path(folder))
            except (InputError, Diverged) as error:
                print(f"# {config.label}: {str(error)[:90]}", flush=True)
        if found:
            print(f'minutes = {sum(found.values()) / len(found):.2f}\n\n["{name}".variants]')
            for label, value in found.items():
                print(f'"{label}" = {value:.2f}', flush=True)


if __name__ == "__main__":
    main()
