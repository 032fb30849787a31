"""Sweeps: on this machine, by submitit, and searches by Optuna that go on where they were."""

import errno
import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from attractor.errors import InputError
from attractor.experiments.grid import axes, sweep_runs
from attractor.experiments.naming import Names
from attractor.experiments.search import Search, search
from attractor.experiments.space import Space, listed
from attractor.experiments.train import run_all, run_folder
from attractor.runs.engines import ENGINES, Places
from experiments.helpers import TINY, attractor, called, numbers

SHORT = ["train.steps=4", "train.eval_every=2", "seeds=[0]"]


def grid_runs(**options: Any) -> list[Any]:
    return sweep_runs(str(TINY), axes(["model.hidden_size=2,3"]), SHORT, ["LSTM"], **options)


def folders(out: Path) -> list[Path]:
    return [run_folder(out, config) for config in grid_runs()]


def test_the_command_prints_one_line_for_each_point(tmp_path: Path) -> None:
    grid = ("--grid", "model.hidden_size=2,3", "--seeds", "0-1", "--set", "train.steps=3")
    done = called("sweep", TINY, *grid, "--only", "LSTM", "--out", tmp_path, "-j", "1", "-q")
    assert done.returncode == 0, done.stderr
    assert "LSTM (model.hidden_size=2)" in done.stdout
    assert "LSTM (model.hidden_size=3)" in done.stdout
    assert len(list(tmp_path.rglob("done.json"))) == 4


def test_the_same_runs_whatever_the_engine(tmp_path: Path) -> None:
    local = Places("local", jobs=1)
    run_all(grid_runs(), tmp_path / "local", places=local)
    slurm = run_all(grid_runs(), tmp_path / "slurm", places=Places("slurm", address="local"))
    assert [one.how for one in slurm] == ["done", "done"], slurm
    for here, there in zip(folders(tmp_path / "local"), folders(tmp_path / "slurm"), strict=True):
        assert numbers(here) == numbers(there)


def test_a_run_that_failed_is_kept_and_tried_again_only_if_that_is_asked(tmp_path: Path) -> None:
    [config] = sweep_runs(str(TINY), [], [*SHORT, "optimiser.lr=1e38"], ["LSTM"])
    place = run_folder(tmp_path, config)
    one = Places(jobs=1)
    [first] = run_all([config], tmp_path, places=one, retry=False)
    assert first.how == "failed"
    reason = json.loads((place / "failed.json").read_text())["reason"]
    [again] = run_all([config], tmp_path, places=one, retry=False)
    assert (again.how, reason in again.message, "Try --retry" in again.message) == (
        "failed",
        True,
        True,
    )
    before = (place / "failed.json").stat().st_mtime_ns
    [tried] = run_all([config], tmp_path, places=one, retry=True)
    assert "Try --retry" not in tried.message
    assert (place / "failed.json").stat().st_mtime_ns > before


def test_an_unexpected_error_is_kept_with_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from attractor.training.supervised import Supervised

    def fall(self: Supervised) -> None:
        raise ZeroDivisionError("a slip")

    monkeypatch.setattr(Supervised, "advance", fall)
    first, second = run_all(grid_runs(), tmp_path, places=Places(jobs=1), retry=False)
    assert (first.how, second.how) == ("failed", "failed")
    kept = json.loads((folders(tmp_path)[0] / "failed.json").read_text())
    assert kept == {"reason": "ZeroDivisionError: a slip"}


def test_messages_name_the_point_of_a_grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it fails now or failed before."""
    from attractor.training.process import Diverged
    from attractor.training.supervised import Supervised

    def diverge(self: Supervised) -> None:
        raise Diverged("the loss became nan", "Try a smaller rate.")

    monkeypatch.setattr(Supervised, "advance", diverge)
    runs = sweep_runs(str(TINY), axes(["optimiser.lr=0.1,0.2"]), SHORT, ["LSTM"])
    for said in (": ", " failed before: "):
        ended = run_all(runs, tmp_path, places=Places(jobs=1), retry=False)
        for one, rate in zip(ended, (0.1, 0.2), strict=True):
            name = f"LSTM (optimiser.lr={rate}), seed 0"
            assert one.message.startswith(f"{name}{said}the loss became nan")


def test_runs_of_several_experiments_are_named_by_them() -> None:
    tiny, demo = (sweep_runs(name, [], SHORT, ["LSTM"])[0] for name in (str(TINY), "demo"))
    names = Names.of([tiny, demo])
    assert [names(tiny), names(demo)] == ["tiny: LSTM, seed 0", "demo: LSTM, seed 0"]
    assert Names.of([tiny])(tiny) == "LSTM, seed 0"


def test_engines_say_what_they_lack() -> None:
    runs = grid_runs()
    with pytest.raises(InputError, match=r"known engine \(local, ray, slurm\), but got 'sky'"):
        run_all(runs, Path("unused"), places=Places("sky"))
    with pytest.raises(InputError, match=r"no address for runs on this machine, but got 'auto'"):
        run_all(runs, Path("unused"), places=Places("local", address="auto"))
    with pytest.raises(InputError, match=r"expected Slurm on this machine|but got 'x'"):
        run_all(runs, Path("unused"), places=Places("slurm", address="x"))
    assert set(ENGINES) == {"local", "ray", "slurm"}


def found_in(out: Path, trials: int, **options: Any) -> Any:
    space = Space.read(["optimiser.lr=1e-3..1e-1:log", "model.hidden_size=2,4"])
    what = Search.of(str(TINY), space, changes=SHORT, only=["LSTM"], out=out, **options)
    return search(what, trials, places=Places(jobs=1))


def test_a_search_keeps_its_trials_and_goes_on(tmp_path: Path) -> None:
    first = found_in(tmp_path, 2)
    assert [one.status for one in first.trials] == ["complete"] * 2
    more = found_in(tmp_path, 3)
    assert {one.number for one in more.trials} == {0, 1, 2}
    assert {one.values for one in first.trials} <= {one.values for one in more.trials}
    values = [one.value for one in more.trials]
    assert values == sorted(values)
    assert more.best == more.trials[0]
    assert found_in(tmp_path, 3) == more


def test_a_search_goes_by_the_validation_measure_of_its_runs(tmp_path: Path) -> None:
    found = found_in(tmp_path, 2, measure="accuracy")
    assert found.measure == "valid accuracy"
    values = [one.value for one in found.trials]
    assert values == sorted(values, reverse=True)
    logged = []
    for file in tmp_path.rglob("metrics.jsonl"):
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        logged.append([row["accuracy"] for row in rows if row["split"] == "valid"][-1])
    assert sorted(logged, reverse=True) == values


def test_searches_that_cannot_be_are_refused(tmp_path: Path) -> None:
    space = Space.read(["optimiser.lr=1e-3..1e-1:log"])
    with pytest.raises(InputError, match=r"one variant to search .* has 2. Try --only 'GRU'"):
        Search.of(str(TINY), space, changes=SHORT, out=tmp_path)
    with pytest.raises(InputError, match=r"expected a measure to search by .*but got 'speed'"):
        Search.of(str(TINY), space, changes=SHORT, only=["LSTM"], measure="speed", out=tmp_path)


def test_a_search_takes_json_and_tells_the_whole_command_of_its_best(tmp_path: Path) -> None:
    """What was given counts in the command too, and is quoted where a shell needs it."""
    command = ("sweep", TINY, "--grid", "model.hidden_size=2,4", "--only", "LSTM", "--trials", "1")
    short = ("--seeds", "0", "--set", "train.steps=3", "--set", "train.eval_every=2")
    whole = (*command, *short, "--out", tmp_path, "-j", "1")
    done = called(*whole)
    [shown] = [line for line in done.stderr.splitlines() if line.startswith("[")]
    line = r"\[1/1\] trial 0 \(model.hidden_size=[24]\): done, valid loss \d\.\d+"
    assert re.fullmatch(line, shown), shown
    told = done.stdout.splitlines()[-1]
    assert told.startswith("best by valid loss: attractor run ")
    assert "--only LSTM --set train.steps=3 --set train.eval_every=2 --set 'seeds=[0]'" in told
    [row] = json.loads(called(*whole, "--json").stdout)
    assert row["settings"]["model.hidden_size"] in ("2", "4")
    assert told.endswith(f"--set model.hidden_size={row['settings']['model.hidden_size']}")
    assert (row["status"], row["measure"], row["value"] > 0) == ("complete", "valid loss", True)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--report", "page.html"], "Try `attractor report "),
        (["--retry"], "does not go back to points that failed"),
        (["--track", "tensorboard"], "Try `attractor track "),
        (["--dry-run"], "where a search looks follows"),
    ],
)
def test_what_a_search_cannot_follow_is_refused(
    given: list[str], said: str, tmp_path: Path
) -> None:
    command = ("sweep", TINY, "--grid", "model.hidden_size=2,4", "--trials", "1")
    refused = called(*command, "--out", tmp_path, *given)
    assert refused.returncode == 2
    assert f"expected {given[0]} without --trials, but got both" in refused.stderr
    assert said in refused.stderr


def test_a_range_needs_a_search() -> None:
    with pytest.raises(InputError, match=r"list of values for a.b, but got '8\.\.24'.*--trials 20"):
        listed(["c=1,2", "a.b=8..24"])


def test_a_report_of_a_sweep_tells_of_runs_that_failed(tmp_path: Path) -> None:
    grid = ("--grid", "optimiser.lr=0.1,1e38", "--only", "LSTM", "--seeds", "0")
    page = tmp_path / "page.html"
    short = ("--set", "train.steps=4", "--out", tmp_path, "-j", "1", "-q", "--report", page)
    done = called("sweep", TINY, *grid, *short)
    assert done.returncode == 1
    assert "1 run failed and was left out of all means" in page.read_text()


def test_points_that_are_refused_are_kept_with_the_reason(tmp_path: Path) -> None:
    """The others are done; the same command says it again, and --retry tries it again."""
    grid = ("--grid", "optimiser.lr=0.1,-1", "--only", "LSTM", "--seeds", "0")
    short = ("--set", "train.steps=4", "--out", tmp_path, "-j", "1", "-q")
    first = called("sweep", TINY, *grid, *short)
    assert first.returncode == 2
    assert [word in first.stdout for word in ("lr=0.1)", "lr=-1)", "failed")] == [True] * 3
    [kept] = tmp_path.rglob("failed.json")
    assert "Invalid learning rate: -1" in json.loads(kept.read_text())["reason"]
    assert "lr = -1" in (kept.parent / "config.toml").read_text()
    again = called("sweep", TINY, *grid, *short)
    assert again.returncode == 1
    assert "failed before: expected options that Adam can use" in again.stderr
    assert called("sweep", TINY, *grid, *short, "--retry").returncode == 2
    refused = called(
        "run", TINY, "--only", "LSTM", "--seeds", "0", "--set", "optimiser.lr=-2", *short
    )
    assert refused.returncode == 2
    assert [*tmp_path.rglob("failed.json")] == [kept]


def test_a_place_that_takes_no_files_is_told_by_each_engine(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    out = tmp_path / "file/runs"
    for one in run_all(grid_runs(), out, places=Places(jobs=1), keep_refused=True):
        assert one.how == "refused"
        assert one.message.startswith(f"expected to be able to write {out}/tiny/lstm-")
    with pytest.raises(InputError, match=f"expected to be able to write {out}"):
        run_all(grid_runs(), out, places=Places("slurm", address="local"))


def test_finished_runs_are_shown_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unlink(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    one = Places(jobs=1)
    run_all(grid_runs(), tmp_path, places=one)
    monkeypatch.setattr(os, "unlink", unlink)
    assert [one.how for one in run_all(grid_runs(), tmp_path, places=one)] == ["done"] * 2


def test_a_search_of_few_points_says_how_many_there_are(tmp_path: Path) -> None:
    command = ("sweep", TINY, "--grid", "model.hidden_size=2,4", "--only", "LSTM", "--trials", "9")
    short = ("--seeds", "0", "--set", "train.steps=3", "--set", "train.eval_every=2")
    done = called(*command, *short, "--out", tmp_path, "-j", "1")
    assert "there are no more than 2 points to try, and each is tried once." in done.stderr
    assert "2 trials in " in done.stderr
    assert len(list(tmp_path.rglob("done.json"))) == 2


@pytest.mark.timeout(240)
def test_a_search_that_is_killed_tries_the_same_point_again(tmp_path: Path) -> None:
    command = ("sweep", TINY, "--grid", "optimiser.lr=1e-3..1e-1:log", "--only", "LSTM")
    short = ("--seeds", "0", "--out", tmp_path, "-j", "1", "-q")
    process = attractor(*command, "--trials", "1", "--set", "train.steps=3000", *short)
    deadline = time.monotonic() + 90
    while not list(tmp_path.rglob("checkpoint*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    [before] = [path.parent for path in tmp_path.rglob("metrics.jsonl")]
    done = called(*command, "--trials", "1", "--set", "train.steps=3000", *short)
    assert done.returncode == 0, done.stderr
    [after] = [path.parent for path in tmp_path.rglob("done.json")]
    assert after == before
    assert json.loads((after / "environment.json").read_text())  # both starts are on record
    assert "complete" in done.stdout
