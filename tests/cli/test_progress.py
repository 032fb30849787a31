"""What is shown of runs that go on elsewhere."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from rich.progress import TimeRemainingColumn

from attractor.cli.pace import Pace
from attractor.cli.progress import Followed, Watch
from attractor.experiments.config import RunConfig
from attractor.experiments.grid import Axis, sweep_runs
from attractor.experiments.table import load
from attractor.experiments.train import runs_of
from attractor.runs.jobs import Ended


def watch(tmp_path: Path) -> tuple[Watch, RunConfig]:
    config = runs_of(*load("permuted-mnist"))[0]
    return Watch([config], tmp_path, quiet=True), config


def line(shown: Watch, config: RunConfig, row: dict[str, Any]) -> str:
    """What is said of a run that has come so far."""
    one = shown.open[config.id]
    shown.pace.see(config.id, row["step"] / one.total if one.total else None)
    return shown._line(config.id, one, row)


def lr_runs(*rates: str) -> list[RunConfig]:
    """Runs that differ by a setting that their label does not name."""
    grid = [Axis("optimiser.lr", rates)]
    return list(sweep_runs("demo", grid, ["seeds=[0]"], ["LSTM"]))


def write(tmp_path: Path, config: RunConfig, step: int) -> None:
    folder = tmp_path / config.experiment / config.id
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "metrics.jsonl", "a") as file:
        file.write(f'{{"step": {step}, "split": "train", "loss": 0.5}}\n')


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
    assert line(shown, config, row) == f"{config.label}, seed 0: {said}"


def test_how_long_a_run_is_may_be_for_its_data_to_tell(tmp_path: Path) -> None:
    changes = ["stream={name='split_series'}"]
    config = runs_of(*load("permuted-mnist", changes))[0]
    said = line(Watch([config], tmp_path, quiet=True), config, {"step": 10, "loss": 0.5})
    assert said.endswith("step 10/?, loss 0.5000")


def test_nothing_is_said_before_the_first_loss(tmp_path: Path) -> None:
    shown, config = watch(tmp_path)
    assert shown._last_row(config.id) is None


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of the estimates, which a test moves on."""
    now = [100.0]
    monkeypatch.setattr("attractor.cli.pace.time.monotonic", lambda: now[0])
    return now


def test_a_line_tells_the_time_left(tmp_path: Path, now: list[float]) -> None:
    shown, config = watch(tmp_path)
    assert line(shown, config, {"step": 100, "loss": 0.5}).endswith("loss 0.5000")
    now[0] += 30
    said = line(shown, config, {"step": 200, "loss": 0.5})
    assert said.endswith("step 200/1000, loss 0.5000, about 4 min 00 s left")


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


def test_a_line_tells_of_the_whole(tmp_path: Path, now: list[float]) -> None:
    """Runs that were done before are counted, but do not make the rest look short."""
    configs = runs_of(*load("permuted-mnist"))[:8]
    shown = Watch(configs, tmp_path, quiet=True)
    for config in configs[:3]:
        shown.end(Ended(config, "done"))
    assert shown._whole(0) == "all runs: 3 of 8 done"
    for config in configs[3:5]:
        shown.pace.see(config.id, 0.0)
    now[0] += 60
    shown.end(Ended(configs[3], "done"))
    shown.end(Ended(configs[4], "failed"))
    told = shown._whole(2)
    assert told == "all runs: 4 of 8 done, 2 running, 1 failed, about 3 min 00 s left"


def test_time_left_falls_while_runs_go_on(now: list[float]) -> None:
    """Six runs of 60 s, two at a time: what is half done counts as half."""
    pace, left = Pace(), []
    for pair in ("ab", "cd", "ef"):
        for tenth in range(11):
            for key in pair:
                pace.see(key, tenth / 10)
            left.append(pace.left(6 - 2 * ["ab", "cd", "ef"].index(pair)))
            now[0] += 6
        now[0] -= 6
        for key in pair:
            pace.end(key, whole=True)
    assert left[0] is None
    told = [one for one in left if one is not None]
    assert told[0] == pytest.approx(174)
    assert told == sorted(told, reverse=True)
    assert told[-2] == pytest.approx(12)


def test_runs_that_are_at_their_end_when_first_seen_count_whole(now: list[float]) -> None:
    """Where a start takes longer than a run, as on a cluster, a look comes when all is done."""
    pace = Pace()
    pace.see("a", 1.0)
    now[0] += 45
    pace.see("b", 1.0, new=True)
    assert pace.left(18) == pytest.approx(45 * 16)  # a and b have not told their end yet
    pace.end("a", whole=True)
    pace.end("b", whole=True)
    assert pace.left(16) == pytest.approx(45 * 16)


def test_only_runs_that_began_on_the_way_are_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attractor.cli.progress.BETWEEN_LOOKS", 0.01)
    configs = runs_of(*load("permuted-mnist"))[:3]
    write(tmp_path, configs[1], 400)
    with Watch(configs, tmp_path, quiet=True) as shown:
        for config, step in zip(configs, (500, 600, 700), strict=True):
            write(tmp_path, config, step)
            deadline = time.monotonic() + 20
            while config.id not in shown.pace.now and time.monotonic() < deadline:
                time.sleep(0.01)
    assert [shown.pace.base[config.id] for config in configs] == [0.5, 0.6, 0.0]


def test_the_whole_takes_no_less_than_the_slowest_run(now: list[float]) -> None:
    pace = Pace()
    for key in "abcd":
        pace.see(key, 0.0)
    now[0] += 60
    for key in "abc":
        pace.end(key, whole=True)
    pace.see("d", 0.5)
    assert pace.left(1) == pace.left_of("d") == pytest.approx(60)


def test_what_failed_early_does_not_make_the_rest_look_short(now: list[float]) -> None:
    pace = Pace()
    pace.see("a", 0.0)
    for key in "bcd":
        pace.end(key, whole=False)  # refused, without a step
    now[0] += 60
    pace.see("a", 0.5)
    assert pace.left(3) == pytest.approx(300)
    pace.end("a", whole=False)
    pace.see("a", 0.9)  # a look that came late
    assert pace.left(2) == pytest.approx(240)


def test_the_whole_is_told_every_few_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that waits to go on has a log too, but is not at work."""
    monkeypatch.setattr("attractor.cli.progress.BETWEEN_LINES", 0.01)
    monkeypatch.setattr("attractor.cli.progress.BETWEEN_LOOKS", 0.01)
    configs = runs_of(*load("permuted-mnist"))[:2]
    for config in configs:
        write(tmp_path, config, 2)
    with Watch(configs, tmp_path, quiet=False) as shown:
        time.sleep(0.05)
        write(tmp_path, configs[0], 3)
        deadline = time.monotonic() + 20
        while shown.pace.since is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.2)
    said = capsys.readouterr().err
    assert "all runs: 0 of 2 done, 1 running\n" in said
    assert "2 running" not in said


def test_the_bar_of_the_whole_moves_with_the_steps_of_its_runs(tmp_path: Path) -> None:
    configs = lr_runs("0.1", "0.2", "0.3")
    shown = Watch(configs, tmp_path, quiet=True)
    shown.pace.see(configs[0].id, 0.25)
    shown.pace.see(configs[1].id, -0.5)  # of its preparation
    shown.end(Ended(configs[2], "done"))
    assert shown.progress.tasks[0].completed == 1.25


def test_lines_name_the_point_of_a_grid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configs = lr_runs("0.1", "nan")
    with Watch(configs, tmp_path, quiet=False) as shown:
        for config in configs:
            shown.end(Ended(config, "done"))
    assert capsys.readouterr().err.splitlines()[-2:] == [
        "[1/2] LSTM (optimiser.lr=0.1), seed 0: done",
        "[2/2] LSTM (optimiser.lr=nan), seed 0: done",
    ]
    row = {"step": 10, "loss": 0.5}
    assert line(Watch(configs, tmp_path, quiet=True), configs[1], row).startswith(
        "LSTM (optimiser.lr=nan), seed 0: step 10/"
    )


def test_a_search_is_followed_as_runs_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trial goes on through the runs of its seeds; one that is pruned has its end too."""
    monkeypatch.setattr("attractor.cli.progress.BETWEEN_LINES", 0.01)
    monkeypatch.setattr("attractor.cli.progress.BETWEEN_LOOKS", 0.01)
    configs = lr_runs("0.1", "0.2")
    logs = tuple(tmp_path / one.experiment / one.id / "metrics.jsonl" for one in configs)
    write(tmp_path, configs[0], 300)
    write(tmp_path, configs[1], 25)
    trial = {"4": Followed("trial 4 (a=1)", logs, 300)}
    with Watch((), tmp_path, quiet=False, trials=6, find=lambda: trial) as shown:
        deadline = time.monotonic() + 20
        while shown.pace.since is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.2)
        trial = {}
        shown.close("4", "trial 4 (a=1)", "pruned", count=5)
        time.sleep(0.1)
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("6 trials in")
    assert "trial 4 (a=1): step 325/600, loss 0.5000" in said
    assert "all trials: 0 of 6 done, 1 running" in said
    assert "[5/6] trial 4 (a=1): pruned" in said
    assert any(line.startswith("all trials: 4 of 6 done, 1 pruned") for line in said)
