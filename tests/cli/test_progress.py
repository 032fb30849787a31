"""What is shown of runs that go on elsewhere."""

import json
import time
from pathlib import Path

import pytest
from rich.progress import TimeRemainingColumn

from attractor.cli.progress import Watch
from attractor.experiments.config import RunConfig
from attractor.experiments.table import load
from attractor.experiments.train import runs_of
from attractor.runs.jobs import Ended


def watch(tmp_path: Path) -> tuple[Watch, RunConfig]:
    config = runs_of(*load("permuted-mnist"))[0]
    return Watch([config], tmp_path, quiet=True), config


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"step": 10, "split": "train", "loss": 0.5}], "step 10/1000, loss 0.5000"),
        (
            [
                {"step": 10, "split": "train", "loss": 0.5},
                {"step": 10, "split": "valid", "accuracy": 0.9},
            ],
            "step 10/1000, loss 0.5000",
        ),
        (
            [{"step": -3, "split": "meta", "loss": 2.0}],
            "step 0/1000, 3 steps of preparation left, loss 2.0000",
        ),
    ],
)
def test_a_line_has_the_last_loss(tmp_path: Path, rows: list[dict[str, object]], said: str) -> None:
    shown, config = watch(tmp_path)
    folder = tmp_path / config.experiment / config.id
    folder.mkdir(parents=True)
    folder.joinpath("metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    row = shown._last_row(config.id)
    assert row is not None
    assert shown._line(config.id, row) == f"{config.label}, seed 0: {said}"


def test_how_long_a_run_is_may_be_for_its_data_to_tell(tmp_path: Path) -> None:
    changes = ["stream={name='split_series'}"]
    config = runs_of(*load("permuted-mnist", changes))[0]
    line = Watch([config], tmp_path, quiet=True)._line(config.id, {"step": 10, "loss": 0.5})
    assert line.endswith("step 10/?, loss 0.5000")


def test_nothing_is_said_before_the_first_loss(tmp_path: Path) -> None:
    shown, config = watch(tmp_path)
    assert shown._last_row(config.id) is None


def test_a_line_tells_the_time_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown, config = watch(tmp_path)
    now = [100.0]
    monkeypatch.setattr("attractor.cli.progress.time.monotonic", lambda: now[0])
    assert shown._line(config.id, {"step": 100, "loss": 0.5}).endswith("loss 0.5000")
    now[0] += 30
    line = shown._line(config.id, {"step": 200, "loss": 0.5})
    assert line.endswith("step 200/1000, loss 0.5000, about 4 min 00 s left")


def test_bars_have_the_time_left(tmp_path: Path) -> None:
    shown, _ = watch(tmp_path)
    assert any(isinstance(column, TimeRemainingColumn) for column in shown.progress.columns)


def test_what_was_stopped_is_not_counted_as_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configs = runs_of(*load("permuted-mnist"))[:3]
    with Watch(configs, tmp_path, quiet=False) as shown:
        for config, how in zip(configs, ("done", "stopped", "stopped"), strict=True):
            shown.end(Ended(config, how))
        assert shown.progress.tasks[0].completed == 1
    assert "[1/3]" in capsys.readouterr().err
    assert shown.finished == 1


def test_a_line_tells_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that were done before are counted, but do not make the rest look short."""
    configs = runs_of(*load("permuted-mnist"))[:8]
    now = [100.0]
    with Watch(configs, tmp_path, quiet=True) as shown:
        for config in configs[:3]:
            shown.end(Ended(config, "done"))
        assert shown._whole(0) == "all runs: 3 of 8 done"
        monkeypatch.setattr("attractor.cli.progress.time.monotonic", lambda: now[0])
        shown.begun = (3, 100.0)
        now[0] += 60
        shown.end(Ended(configs[3], "failed"))
        told = shown._whole(2)
    assert told == "all runs: 3 of 8 done, 2 running, 1 failed, about 4 min 00 s left"


def test_the_whole_is_told_every_few_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("attractor.cli.progress.BETWEEN_LINES", 0.01)
    monkeypatch.setattr("attractor.cli.progress.BETWEEN_LOOKS", 0.01)
    configs = runs_of(*load("permuted-mnist"))[:2]
    folder = tmp_path / configs[0].experiment / configs[0].id
    folder.mkdir(parents=True)
    folder.joinpath("metrics.jsonl").write_text('{"step": 3, "split": "train", "loss": 0.5}\n')
    with Watch(configs, tmp_path, quiet=False) as shown:
        deadline = time.monotonic() + 20
        while shown.begun is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.2)
    assert "all runs: 0 of 2 done, 1 running\n" in capsys.readouterr().err
