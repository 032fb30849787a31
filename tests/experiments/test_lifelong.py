"""Continual learning through the runner: options, killed runs, wrong names."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from attractor.errors import InputError, RunError
from attractor.experiments.config import RunConfig
from attractor.experiments.folder import run_folder
from attractor.experiments.table import load
from attractor.experiments.train import StoppedError, train
from experiments.helpers import numbers

TINY = Path(__file__).with_name("tiny-stream.toml")


def tiny(*changes: str, label: str = "ER") -> RunConfig:
    name, experiment = load(str(TINY), changes)
    return experiment.runs(name, [label])[0]


def _reached(countdown: Iterator[int], updates: int) -> bool:
    return next(countdown) == updates


@pytest.mark.parametrize("label", ["ER", "MetaSGD-CL", "GEM", "EWC", "HAT", "both"])
def test_a_stopped_run_ends_with_the_same_numbers(label: str, tmp_path: Path) -> None:
    config = tiny(label=label)
    train(config, tmp_path / "whole")
    for updates in (1, 3, 5, 4):
        countdown = iter(range(1, updates + 1))
        with pytest.raises(StoppedError):
            train(config, tmp_path, stop=partial(_reached, countdown, updates))
    train(config, tmp_path)
    assert numbers(run_folder(tmp_path, config)) == numbers(run_folder(tmp_path / "whole", config))


def test_the_outcome_has_the_matrix_and_its_measures(tmp_path: Path) -> None:
    config = tiny()
    train(config, tmp_path)
    done: dict[str, Any] = json.loads((run_folder(tmp_path, config) / "done.json").read_text())
    matrix = done["matrix"]
    assert [len(matrix), len(matrix[0])] == [4, 3]
    assert done["test"]["accuracy"] == pytest.approx(sum(matrix[-1]) / 3, abs=1e-6)
    assert done["test"]["first_task_accuracy"] == pytest.approx(matrix[-1][0], abs=1e-6)
    assert done["steps"] == 3 * 6
    assert config.total == 3 * 6


def test_one_strategy_by_its_key() -> None:
    name, experiment = load(str(TINY), ["strategy=er"])
    assert {run.label for run in experiment.runs(name)} == {"ER"}
    name, experiment = load(str(TINY), ["strategy=agem"])
    assert {run.label for run in experiment.runs(name)} == {"agem"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("stream.name=permuted_image", "known stream .* Did you mean 'permuted_images'"),
        ("stream.datasett=mnist", "option of the stream permuted_images .* 'dataset'"),
        ("network.name=mlpp", "known network .* Did you mean 'mlp'"),
        ("network.widht=3", "options that the network mlp takes"),
        ("strategy=err", "known strategy .* Did you mean 'er'"),
    ],
)
def test_wrong_names_are_named(change: str, message: str, tmp_path: Path) -> None:
    name, experiment = load(str(TINY), [change])
    with pytest.raises(InputError, match=message):
        train(experiment.runs(name)[0], tmp_path)


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="the loss became .* of task 1.* a smaller train.lr"):
        train(tiny("train.lr=1e38"), tmp_path)
