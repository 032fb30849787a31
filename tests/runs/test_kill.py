"""Every kind of process is killed with SIGKILL, and ends with the numbers of one that was not."""

import multiprocessing
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from attractor.experiments.learned_config import LearnedRun
from experiments.test_learned import tiny as tiny_learned
from experiments.test_lifelong import tiny as tiny_stream

from attractor.experiments import features
from attractor.experiments.config import RunConfig
from attractor.experiments.rules import train_rule
from attractor.experiments.train import run_folder, train
from attractor.optimisers import load_rule
from attractor.runs.drive import Every, drive
from attractor.tasks.streams.incremental import SETTINGS
from experiments.helpers import numbers, tiny
from experiments.test_features import small, small_images

KILLS = 2
LONG = ("meta.learners=24", "train.steps=80")

RUNS: dict[str, Callable[[], RunConfig]] = {
    "sequence": partial(tiny, "train.steps=150"),
    "meta-training": partial(tiny_learned, "LSTM", *LONG),
    "evolution": partial(tiny_learned, "MTL2L, PES", "meta.updates=40", "train.steps=20"),
    "tuning": partial(tiny_learned, "Adam, tuned", "train.tune_steps=40", "train.steps=60"),
    "continual": partial(tiny_stream, "train.steps=60", label="MetaSGD-CL"),
    "features": partial(small, "stream.features.steps=24"),
    "rule": partial(tiny_learned, "LSTM", *LONG),
}


def do(kind: str, out: Path) -> None:
    """Do a run of a kind, or what is left of it."""
    torch.set_num_threads(1)
    SETTINGS["cifar10"] = SETTINGS["cifar10"]._replace(load=small_images)
    vars(features)["drive"] = partial(drive, every=Every(steps=2))
    config = RUNS[kind]()
    if kind == "rule":
        assert isinstance(config, LearnedRun)
        train_rule(config, out / "rule.safetensors")
    else:
        train(config, out)


def result(kind: str, out: Path) -> Any:
    if kind == "rule":
        rule = load_rule(out / "rule.safetensors")
        return torch.cat([p.detach().flatten() for p in rule.parameters()]).tolist()
    logs = [path.read_bytes() for path in out.glob("features/*/metrics.jsonl")]
    return numbers(run_folder(out, RUNS[kind]())), logs


def sizes(out: Path) -> list[int]:
    return [path.stat().st_size for path in sorted(out.rglob("metrics.jsonl"))]


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `do` changes in this process is changed back."""
    monkeypatch.setattr(features, "drive", drive)
    monkeypatch.setitem(SETTINGS, "cifar10", SETTINGS["cifar10"])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", RUNS)
def test_killed_it_ends_with_the_same_numbers(kind: str, tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["attractor.experiments.rules", "attractor.experiments.lifelong"]
    )
    rng = random.Random(kind)
    killed = 0
    out = tmp_path / "killed"
    for _ in range(KILLS):
        before = sizes(out)
        process = context.Process(target=do, args=(kind, out))
        process.start()
        while process.is_alive() and sizes(out) == before:
            time.sleep(0.01)
        time.sleep(rng.random() * 0.15)
        killed += process.is_alive()
        process.kill()
        process.join()
    assert killed, "each was over before it could be killed"
    do(kind, out)
    do(kind, tmp_path / "whole")
    assert result(kind, out) == result(kind, tmp_path / "whole")
