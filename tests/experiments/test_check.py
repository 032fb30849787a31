"""What is refused of a sweep before any of it runs, and how a search that found nothing ends."""

import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from attractor.errors import InputError
from attractor.experiments.check import refusals
from attractor.experiments.grid import axes, sweep_runs
from attractor.experiments.search import Search, search
from attractor.experiments.space import Space
from attractor.runs.engines import Places
from experiments.helpers import TINY, attractor, called


def swept(*options: Any) -> Any:
    return called("sweep", TINY, "--only", "LSTM", "--seeds", "0-1", *options)


@pytest.mark.parametrize(
    ("grid", "count", "said"),
    [
        ("model.hidden_size=2,abc", 2, "'hidden_size' of the model recurrent to be a whole number"),
        ("model.hidden_size=2,-3", 2, "hidden_size to be a whole number of at least 1"),
        ("model.hiden_size=2,3", 4, "Did you mean 'hidden_size'"),
        ("model.cell=lstm,nruu", 2, "Did you mean 'nru'"),
        ("optimiser.lr=0.1,x", 2, "but got {'lr': 'x'}"),
        ("optimiser.lrr=0.1,0.2", 4, "Did you mean 'lr'"),
        ("task.length=3,4", 4, "known option of the task"),
    ],
)
def test_what_the_options_are_of_checks_them(grid: str, count: int, said: str) -> None:
    found = refusals(sweep_runs(str(TINY), axes([grid]), ["seeds=[0, 1]"], ["LSTM"]))
    assert len(found) == count
    assert all(said in why for why in found.values())


def test_a_dry_run_tells_what_would_be_refused(tmp_path: Path) -> None:
    shown = swept("--grid", "model.hidden_size=2,abc", "--out", tmp_path, "--dry-run")
    assert shown.returncode == 2
    assert len(shown.stdout.split()) == 4
    assert "2 of 4 runs would be refused: expected the option 'hidden_size'" in shown.stderr
    assert not list(tmp_path.iterdir())


def test_a_dry_run_of_good_points_says_nothing_else(tmp_path: Path) -> None:
    shown = swept("--grid", "model.hidden_size=2,3", "--out", tmp_path, "--dry-run")
    assert (shown.returncode, shown.stderr) == (0, "")


def test_runs_that_differ_by_their_seed_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(
        "attractor.experiments.check.build", lambda config, context: made.append(config.seed)
    )
    runs = sweep_runs(str(TINY), axes(["model.hidden_size=2,3"]), ["seeds=[4, 5, 6]"], ["LSTM"])
    assert refusals(runs) == {}
    assert made == [4, 4]


def test_a_slip_of_a_users_own_class_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def fall(config: Any, context: Any) -> None:
        raise ZeroDivisionError("a slip")

    monkeypatch.setattr("attractor.experiments.check.build", fall)
    [config] = sweep_runs(str(TINY), [], ["seeds=[0]"], ["LSTM"])
    assert refusals([config]) == {config.id: "unexpected ZeroDivisionError: a slip"}


def test_engines_are_checked_by_dry_runs_and_searches_too(tmp_path: Path) -> None:
    for how in (["--dry-run"], ["--trials", "1"]):
        told = swept("--grid", "model.hidden_size=2,3", "--out", tmp_path, "--engine", "sky", *how)
        assert told.returncode == 2
        assert "known engine (local, ray, slurm), but got 'sky'" in told.stderr
    told = swept("--out", tmp_path, "--address", "auto", "--dry-run")
    assert "no address for runs on this machine, but got 'auto'" in told.stderr
    space = Space.read(["model.hidden_size=2,3"])
    with pytest.raises(InputError, match="known engine"):
        search(Search.of(str(TINY), space, only=["LSTM"], out=tmp_path), 1, places=Places("sky"))


def test_a_measure_is_for_a_search() -> None:
    told = swept("--measure", "accuracy", "--dry-run")
    assert told.returncode == 2
    assert "expected --measure beside --trials" in told.stderr


@pytest.mark.parametrize("grid", ["model.hidden_size=0..3", "model.hiden_size=2..3", "cell=nru,x"])
def test_a_search_refuses_values_that_no_run_can_have(grid: str, tmp_path: Path) -> None:
    told = swept("--grid", grid, "--trials", "2", "--out", tmp_path)
    assert told.returncode == 2
    assert not list(tmp_path.rglob("*.toml"))


@pytest.mark.parametrize("grid", ["a=1e-3...1e-1:log", "a=1..2..3", "a=1..4,8", "a=1..x", "a=1.."])
def test_what_is_almost_a_range_is_refused(grid: str) -> None:
    with pytest.raises(InputError, match="one range or a list of values for a, but got"):
        Space.read([grid])


def test_names_with_dots_are_values() -> None:
    assert Space.read(["a=../x.toml,b..c"]).choices == {"a": ("../x.toml", "b..c")}


def test_edges_have_each_value_and_each_end() -> None:
    space = Space.read(["a=1..8", "b=x,y,z"])
    assert space.first == ["a=1", "b=x"]
    assert space.edges == [["a=1", "b=x"], ["a=8", "b=x"], ["a=1", "b=y"], ["a=1", "b=z"]]


def test_a_search_of_which_every_trial_fails_has_failed(tmp_path: Path) -> None:
    grid = ("--grid", "optimiser.lr=1e38,2e38", "--trials", "2", "--set", "train.steps=4")
    told = swept(*grid, "--set", "train.eval_every=2", "--out", tmp_path, "-j", "1")
    assert told.returncode == 1
    lines = told.stderr.splitlines()
    told_of = [line for line in lines if line.startswith("[")]
    ends = [rf"\[{n}/2\] trial \d \(optimiser.lr=[12]e38\): failed" for n in (1, 2)]
    assert [bool(re.fullmatch(*pair)) for pair in zip(ends, told_of, strict=True)] == [True] * 2
    assert sum("unexpected RuntimeError: value cannot be converted" in line for line in lines) == 1
    assert "expected a trial with a valid loss, but none of 2 has one" in told.stderr


@pytest.mark.timeout(240)
def test_a_search_that_is_stopped_says_so(tmp_path: Path) -> None:
    grid = ("--grid", "optimiser.lr=1e-3,1e-2", "--only", "LSTM", "--trials", "1", "--seeds", "0")
    command = ("sweep", TINY, *grid, "--set", "train.steps=100000", "--out", tmp_path, "-j", "1")
    process = attractor(*command)
    deadline = time.monotonic() + 90
    while not list(tmp_path.rglob("metrics.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert "stopped; what was on its way is saved and goes on with the same command" in errors
