"""What runs cost, for costs.toml: minutes of one core, from the process time of first updates.

    python benchmarks/run_costs.py ntm-copy irc-figure-3 task.batches=2

Measured are the variants that targets ask for, or all where none does; settings apply to each
experiment. What meta-trains a rule first counts too. A variant that cannot be started here is left
out.
"""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import torch

from attractor.continual.lifelong import Curriculum
from attractor.errors import InputError
from attractor.experiments.table import load
from attractor.experiments.train import build, runs_of
from attractor.reproduction.targets import TARGETS
from attractor.runs.drive import Context
from attractor.training.chained import Chained
from attractor.training.process import Diverged, Process

SECONDS = 3.0
"""Of process time for the updates of a variant, or one update more."""

WARM = 2
"""Updates that do not count."""

LEVEL = 5
"""Updates of each level of a curriculum."""


def minutes(config: Any, folder: Path) -> float:
    """Of one run, if every update took what the first ones do; evaluations are left out."""
    work = build(config, Context(None, folder, lambda: False))
    process = work.process
    if isinstance(process, Curriculum):
        return level_by_level(process, config.train.steps)
    if not isinstance(process, Chained):
        return seconds_each(process) * config.train.steps / 60
    before = -process.step * seconds_each(process.first)  # a rule is as fast before as after it
    return (before + seconds_each(process.then()) * config.train.steps) / 60


def seconds_each(process: Process) -> float:
    """Of an update, from the first ones, or from all where there are few."""
    for _ in range(WARM):
        process.advance()
    first, since = process.step, process_time()
    while process_time() - since < SECONDS and not process.done:
        process.advance()
    return (process_time() - since) / (process.step - first)


def level_by_level(learner: Curriculum, steps: int) -> float:
    """Of a run that passes every level, from a few updates of each."""
    learner.rules = replace(
        learner.rules, steps=LEVEL, window=LEVEL, after=LEVEL, threshold=0.0, held_out=1
    )
    while not learner.done:
        learner.advance()
    return sum(learner.seconds) / LEVEL * steps / 60


def asked(experiment: str) -> list[str]:
    """The variants of an experiment that targets ask for."""
    found = [
        label
        for one in TARGETS.values()
        for name, (_, labels) in (
            *one.experiments("quick").items(),
            *one.experiments("full").items(),
        )
        if name == experiment
        for label in labels
    ]
    return list(dict.fromkeys(found))


def main() -> None:
    torch.set_num_threads(1)
    changes = [word for word in sys.argv[1:] if "=" in word]
    for name in (word for word in sys.argv[1:] if "=" not in word):
        _, experiment = load(name)
        seeds = len(experiment.seeds)
        _, one = load(name, ["seeds=[0]", *changes])
        print(f'\n["{name}"]\nseeds = {seeds}', flush=True)
        found: dict[str, float] = {}
        for config in runs_of(name, one, asked(name)):
            try:
                with tempfile.TemporaryDirectory() as folder:
                    found[config.label] = minutes(config, Path(folder))
                print(f'variants."{config.label}" = {found[config.label]:.2f}', flush=True)
            except (InputError, Diverged) as error:
                print(f"# {config.label}: {str(error)[:90]}", flush=True)
        if found:
            print(f"minutes = {sum(found.values()) / len(found):.2f}", flush=True)


if __name__ == "__main__":
    main()
