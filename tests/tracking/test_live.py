"""Runs are followed while they go on, from the command line and from Python."""

import logging
import time
from pathlib import Path

import pytest
import torch

from attractor.continual import Learner, Naive
from attractor.models import MLP
from attractor.tasks.streams import permuted_images
from attractor.tracking import Live, Point, Tracker, live
from experiments.helpers import TINY_STREAM, called
from tracking.folders import ENDS, ROWS, expected, same, write_run, written


def test_a_run_as_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "BETWEEN_LOOKS", 0.02)
    runs = [tmp_path / "runs/supervised" / name for name in "ab"]
    place = tmp_path / "out/csv/supervised/a"
    with Live(runs, ["csv", "csv"], tmp_path / "out"):
        write_run(runs[0], ROWS["supervised"][:3])
        until = time.monotonic() + 20
        while not (place / "metrics.csv").exists() or len(written(place)) < 6:
            assert time.monotonic() < until
            time.sleep(0.02)
        write_run(runs[0], ROWS["supervised"], ENDS["supervised"])
    assert same(written(place), expected("supervised"))
    assert not (tmp_path / "out/csv/supervised/b").exists()


def test_a_sink_that_fails_is_told_and_runs_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = write_run(tmp_path / "runs/lifelong/a", ROWS["lifelong"])
    (tmp_path / "out/csv/lifelong/a").mkdir(parents=True)
    (tmp_path / "out/csv/lifelong/a/mine.txt").touch()
    with caplog.at_level(logging.WARNING), Live([run], ["csv"], tmp_path / "out"):
        pass
    assert "a is no longer followed into" in caplog.text
    assert "it holds mine.txt" in caplog.text


def test_from_the_command_line(tmp_path: Path) -> None:
    runs = str(tmp_path / "runs")
    done = called("run", TINY_STREAM, "--only", "ER", "--track", "csv", "--out", runs, "-q")
    assert done.returncode == 0, done.stderr
    assert f"to look at: ls -R {tmp_path / 'tracking/csv'}" in done.stderr
    (place,) = (tmp_path / "tracking/csv/tiny-stream").iterdir()
    steps = {point.step for point in written(place) if point.name == "train/loss"}
    assert steps == {*range(2, 19, 2)}
    assert {"test/task_3", "final/forgetting"} < {point.name for point in written(place)}
    again = called("track", runs, "--to", "csv", "--out", str(tmp_path / "tracking"))
    assert again.stdout.startswith("0 new points of 1 runs; to look at")


def test_a_learner_of_ones_own(tmp_path: Path) -> None:
    stream = permuted_images(dataset="digits", tasks=2, generator=torch.Generator().manual_seed(0))
    with Tracker("csv", tmp_path, "naive", {"lr": 0.1}) as tracker:
        learner = Learner(
            MLP([64, 8, 10]),
            stream,
            Naive(),
            optimiser={"name": "sgd", "lr": 0.1},
            iterations=4,
            log_every=2,
            seed=0,
            callbacks=[tracker],
        )
        while not learner.done:
            learner.advance()
    found = written(tmp_path / "own/naive")
    assert [p.step for p in found if p.name == "train/loss"] == [2, 4, 6, 8]
    assert Point("test/task_2", 8, float(learner.matrix[2][1])) in found
