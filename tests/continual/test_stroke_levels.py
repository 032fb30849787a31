"""Levels of pen strokes, and a run of levels that is killed in the middle of one."""

import os
import signal
import time
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from attractor.continual import GEM, grow
from attractor.continual.lifelong import Curriculum, Rules, levels
from attractor.experiments.kinds import kind
from attractor.experiments.table import load
from attractor.experiments.train import run_folder, runs_of, train
from attractor.models import StrokeReader
from attractor.runs.drive import Context
from attractor.tasks import IGNORE, Batch
from experiments.helpers import attractor, called, numbers
from tasks.test_strokes import write


def reader(units: int = 6) -> StrokeReader:
    return StrokeReader("lstm", 4, units, 10, generator=torch.Generator().manual_seed(0))


def test_levels_have_one_digit_more_each_and_no_sequence_twice(tmp_path: Path) -> None:
    write(tmp_path)
    found = levels("strokes", count=3, root=tmp_path, held=20)
    assert [level.name for level in found] == ["strokes 1", "strokes 2", "strokes 3"]
    g = torch.Generator().manual_seed(0)
    one, two = found[2].samples(torch.arange(5), g), found[2].samples(torch.arange(5), g)
    assert one.y.shape == (5, 3)
    assert not torch.equal(one.y, two.y)
    assert len(levels("strokes", root=tmp_path, held=2)) == 20


def test_sequences_of_fewer_digits_count_as_they_do_alone(tmp_path: Path) -> None:
    write(tmp_path)
    task = levels("strokes", count=3, root=tmp_path, held=20)[2]
    model, batch = reader(), task.samples(torch.arange(4))
    short = batch.y.clone()
    short[1, 1:], short[3, 2:] = IGNORE, IGNORE
    weight = torch.tensor([0.5, 2.0, 0.0, 1.5])
    mixed = Batch(batch.x, short, batch.lengths, batch.task, weight)
    expected = 0.0
    for row, (digits, share) in enumerate(zip([3, 1, 3, 2], weight.tolist(), strict=True)):
        alone = batch[row : row + 1]
        said = model(alone.inputs, alone.y[:, :digits])[0]
        expected += share * F.cross_entropy(said, alone.y[0, :digits]).item()
    assert task.loss(model, mixed).item() == pytest.approx(expected, rel=1e-5)


def test_a_reader_of_strokes_grows_and_says_the_same(tmp_path: Path) -> None:
    model = reader().double()
    wide = grow(model, hidden_size=15, generator=torch.Generator().manual_seed(1))
    x = torch.randn(3, 20, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    y = torch.tensor([[1, 2, 3]] * 3)
    assert (model(x, y) - wide(x, y)).abs().max() < 1e-12
    assert (model(x, 4) - wide(x, 4)).abs().max() < 1e-12


def test_its_configuration_makes_a_reader_of_strokes(tmp_path: Path) -> None:
    write(tmp_path)
    name, experiment = load("lifelong-strokes-quick", ["stream.held=20", "train.held_out=4"])
    (config,) = runs_of(name, experiment, ["Small LSTM, GEM, Net2Net"])[:1]
    work = kind("lifelong").build(config, Context(data=tmp_path, out=tmp_path))
    assert isinstance(work.process.model, StrokeReader)
    for _ in range(3):
        work.process.advance()


def test_the_proposed_model_learns_strokes_with_memories_of_all_levels(tmp_path: Path) -> None:
    write(tmp_path)
    found = levels("strokes", count=3, root=tmp_path, held=8)
    rules = Rules(steps=4, window=2, threshold=0.0, after=4, grow_to=12, held_out=8, batch_size=3)
    learner = Curriculum(reader(), found, GEM(9, memory="ring"), rules=rules)
    rows = []
    while not learner.done:
        rows += learner.advance()
    told = [row for row in rows if "current_accuracy" in row]
    assert [row["level"] for row in told] == [1, 2, 3]
    assert "previous_accuracy" not in told[0]
    assert "future_accuracy" not in told[2]
    kept = learner.result()
    assert told[2]["previous_accuracy"] == pytest.approx(kept.per_task_previous[1])
    assert told[0]["future_accuracy"] == pytest.approx(kept.per_task_future[0])


CONFIG = """
version = 2
kind = "lifelong"
title = "Tiny levels"
description = "Levels to be killed in."
budget = "quick"
seeds = [0]

[stream]
name = "lags"
first = 2
step = 1
count = 2

[model]
cell = "lstm"
hidden_size = 8

[train]
steps = 150
window = 50
threshold = 0.0
after = 100
held_out = 5
log_every = 5
checkpoint_every = 10

[[variant]]
label = "GEM"
strategy = { name = "gem", size = 30, memory = "ring" }
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_kill_9_in_the_middle_of_a_level(tmp_path: Path) -> None:
    file = tmp_path / "tiny-levels.toml"
    file.write_text(CONFIG)
    name, experiment = load(str(file))
    (config,) = runs_of(name, experiment)
    train(config, tmp_path / "whole")
    folder = run_folder(tmp_path / "killed", config)
    command = ("run", file, "--out", tmp_path / "killed", "-q")
    process = attractor(*command)
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and process.poll() is None:
        metrics = folder / "metrics.jsonl"
        if metrics.exists() and metrics.read_bytes().count(b"\n") > 12:
            break
        time.sleep(0.02)
    assert process.poll() is None, "it ended before it could be killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert not (folder / "done.json").exists()
    again = called(*command)
    assert again.returncode == 0, again.stderr
    rows, done = numbers(folder)
    expected, whole = numbers(run_folder(tmp_path / "whole", config))
    assert rows == expected
    assert {k: v for k, v in done.items() if k not in ("seconds_per_level", "log")} == {
        k: v for k, v in whole.items() if k not in ("seconds_per_level", "log")
    }
