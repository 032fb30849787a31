"""Reading run folders, and what their numbers add up to, against hand-worked values."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
import torch

from attractor.continual import Learner
from attractor.errors import InputError
from attractor.estimates import estimate
from attractor.experiments.files import read_toml
from attractor.experiments.train import run_folder, train
from attractor.measures import Measure
from attractor.models import MLP
from attractor.report import build
from attractor.results import curve, load_runs, read_runs, summary, variants
from attractor.results.measures import ROWS, TASK, main_metric, measure
from attractor.tasks import ArrayTask, Data
from attractor.tasks.streams import Stream
from attractor.training import Plan, Process, Supervised
from experiments.helpers import tiny

Row = dict[str, Any]


def save(
    root: Path,
    label: str = "LSTM",
    seed: int = 0,
    *,
    rows: list[Row] | None = None,
    done: Row | None = None,
    failed: Row | None = None,
    **config: Any,
) -> Path:
    full: Row = {"experiment": "copy", "budget": "quick", "label": label, "seed": seed}
    full |= {"model": {"cell": label.lower()}, "train": {"lr": 0.1}} | config
    folder = (
        root / str(full["experiment"]) / f"{label}-{seed}-{len(list(root.rglob('config.toml')))}"
    )
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(tomli_w.dumps(full))
    if rows is not None:
        (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, found in (("done", done), ("failed", failed)):
        if found is not None:
            (folder / f"{name}.json").write_text(json.dumps({"steps": 40, **found}))
    return folder


def valid(*losses: float) -> list[Row]:
    return [{"step": 10 * i, "split": "valid", "loss": x} for i, x in enumerate(losses, 1)]


def ended(accuracy: float, seconds: float = 1.0) -> Row:
    return {"seconds": seconds, "parameters": 12, "test": {"accuracy": accuracy, "loss": 0.5}}


def test_a_run_is_found_from_its_folder_its_experiment_and_the_root(tmp_path: Path) -> None:
    folders = [save(tmp_path, seed=seed) for seed in (1, 0)]
    for paths in ([tmp_path], [tmp_path / "copy"], folders, [*folders, tmp_path]):
        assert [run.seed for run in load_runs(paths)] == [0, 1]


def test_the_status_says_how_a_run_ended(tmp_path: Path) -> None:
    save(tmp_path, seed=0, done=ended(0.9))
    save(tmp_path, seed=1, failed={"step": 3, "reason": "NaN"})
    save(tmp_path, seed=2)
    save(tmp_path, seed=3, failed={"step": 3, "reason": "NaN"}, done=ended(0.9))
    runs = load_runs([tmp_path])
    assert [run.status for run in runs] == ["done", "failed", "unfinished", "done"]
    assert runs[1].outcome["reason"] == "NaN"


@pytest.mark.parametrize("half", ['{"step": 30, "spl', '{"step": 30}', "\xff"])
def test_a_last_line_that_is_still_being_written_is_left_out(tmp_path: Path, half: str) -> None:
    folder = save(tmp_path, rows=valid(2.0, 1.0))
    with (folder / "metrics.jsonl").open("a", encoding="latin-1") as file:
        file.write(half)
    (run,) = load_runs([folder])
    assert run.series("valid", "loss") == {10: 2.0, 20: 1.0}


def test_a_step_written_again_counts_once_and_nan_not_at_all(tmp_path: Path) -> None:
    folder = save(tmp_path, rows=[*valid(3.0, 2.0, float("nan")), *valid(4.0)])
    (run,) = load_runs([folder])
    assert run.series("valid", "loss") == {10: 4.0, 20: 2.0}


def test_interval_by_hand() -> None:
    found = estimate([1.0, 2.0, 6.0])
    # The t distribution with two degrees of freedom has its 97.5% point at 4.30265; s = sqrt(7).
    assert found.half_width == pytest.approx(4.30265 * 7**0.5 / 3**0.5, rel=1e-5)
    assert (found.mean, found.median, found.n) == (3.0, 2.0, 3)
    assert estimate([1.0]).half_width is None


def test_a_curve_agrees_with_the_interval_of_its_values(tmp_path: Path) -> None:
    for seed, values in enumerate([(1.0, 5.0), (2.0, 5.0), (6.0, 5.0)]):
        save(tmp_path, seed=seed, rows=valid(*values), done=ended(0.9))
    (line,) = curve(load_runs([tmp_path]), "valid", "loss").lines
    half = estimate([1.0, 2.0, 6.0]).half_width
    assert half is not None
    assert line.steps.tolist() == [10, 20]
    np.testing.assert_allclose(line.mean, [3.0, 5.0])
    np.testing.assert_allclose(line.low, [3.0 - half, 5.0])
    np.testing.assert_allclose(line.high, [3.0 + half, 5.0])


def test_on_a_log_axis_the_interval_is_that_of_the_logarithms(tmp_path: Path) -> None:
    for seed, value in enumerate([0.1, 1.0, 10.0]):
        save(tmp_path, seed=seed, rows=valid(value))
    (line,) = curve(load_runs([tmp_path]), "valid", "loss", log=True).lines
    half = estimate([-1.0, 0.0, 1.0]).half_width
    assert half is not None
    np.testing.assert_allclose([line.low[0], line.mean[0], line.high[0]], [10**-half, 1, 10**half])


def test_failed_runs_are_out_of_the_mean_and_unfinished_ones_in_as_far_as_they_came(
    tmp_path: Path,
) -> None:
    save(tmp_path, seed=0, rows=valid(1.0, 1.0), done=ended(0.9))
    save(tmp_path, seed=1, rows=valid(3.0))
    save(tmp_path, seed=2, rows=valid(100.0, 100.0), failed={"step": 20, "reason": "NaN"})
    runs = load_runs([tmp_path])
    (line,) = curve(runs, "valid", "loss").lines
    assert line.n.tolist() == [2, 1]
    assert line.mean.tolist() == [2.0, 1.0]
    assert np.isnan(line.low[1])
    (row,) = summary(runs)
    assert (row.n, row.failed, row.unfinished) == (1, 1, 1)
    assert row.status == "1 done, 1 failed, 1 unfinished"


def test_a_measure_nobody_has_gives_no_lines(tmp_path: Path) -> None:
    save(tmp_path, rows=valid(1.0))
    assert curve(load_runs([tmp_path]), "valid", "perplexity").lines == ()


def test_the_summary_ranks_and_states_seeds_and_budget(tmp_path: Path) -> None:
    for seed, accuracy in enumerate([0.8, 0.9]):
        save(tmp_path, "LSTM", seed, done=ended(accuracy, seconds=10.0 + seed))
    save(tmp_path, "NRU", 0, done=ended(0.95))
    save(tmp_path, "GRU", 0)
    best, second, last = summary(load_runs([tmp_path]))
    assert [row.label for row in (best, second, last)] == ["NRU", "LSTM", "GRU"]
    assert [row.rank for row in (best, second, last)] == [1, 2, None]
    assert (second.n, second.budget, second.parameters, second.seconds) == (2, "quick", 12, 10.5)
    assert second.estimate is not None
    assert second.estimate.median == pytest.approx(0.85)
    assert second.estimate.half_width == pytest.approx(12.7062 * 0.05, rel=1e-5)
    assert last.estimate is None
    assert last.status == "unfinished"


def test_equal_means_share_a_rank(tmp_path: Path) -> None:
    for label in ("A", "B"):
        save(tmp_path, label, done=ended(0.9))
    save(tmp_path, "C", done=ended(0.8))
    assert [row.rank for row in summary(load_runs([tmp_path]))] == [1, 1, 3]


def test_without_an_accuracy_the_lowest_loss_is_best(tmp_path: Path) -> None:
    save(tmp_path, "A", done={"test": {"loss": 2.0}})
    save(tmp_path, "B", done={"test": {"loss": 1.0}})
    runs = load_runs([tmp_path])
    assert main_metric(runs) == "loss"
    assert [row.label for row in summary(runs)] == ["B", "A"]


def test_a_run_says_which_of_its_numbers_ranks(tmp_path: Path) -> None:
    """Also to older ones that do not, unless none has measured it."""
    save(tmp_path, "A", done={"test": {"loss": 2.0, "accuracy": 0.9, "bits": 3.0}})
    new = {"test": {"loss": 1.0, "accuracy": 0.1, "bits": 1.5}, "leading": "bits"}
    save(tmp_path, "B", done=new)
    runs = load_runs([tmp_path])
    assert main_metric(runs) == "bits"
    assert [row.label for row in summary(runs)] == ["B", "A"]
    assert main_metric(runs[:1]) == "accuracy"


@pytest.mark.parametrize("said", ["nothing", 3, ["bits"], None])
def test_a_leading_number_that_is_not_there_is_passed_over(tmp_path: Path, said: Any) -> None:
    done = {"test": {"loss": 1.0, "accuracy": 0.1, "bits": 1.5}, "leading": said}
    assert main_metric(load_runs([save(tmp_path, done=done)])) == "accuracy"


def test_a_run_says_what_its_numbers_are(tmp_path: Path) -> None:
    """Whatever their names suggest, also to those that say nothing."""
    said = {"loss": ["max", "points", False], "accuracy": ["none", "", True]}
    save(tmp_path, "A", done={"test": {"loss": 2.0, "accuracy": 0.1}, "measures": said})
    save(tmp_path, "B", done={"test": {"loss": 1.0, "accuracy": 0.9}})
    runs = load_runs([tmp_path])
    assert measure("loss", runs) == Measure("max", "points", log=False)
    assert main_metric(runs) == "loss"
    assert [row.label for row in summary(runs)] == ["A", "B"]


@pytest.mark.parametrize("said", [3, {"score": 3}, {"score": ["up", "", False]}, {"score": [1, 2]}])
def test_the_numbers_of_old_or_damaged_runs_are_judged_by_name(tmp_path: Path, said: Any) -> None:
    runs = load_runs([save(tmp_path, done={"test": {"score": 2.0}, "measures": said})])
    assert measure("score", runs) == Measure("max")
    assert measure("average_accuracy", []) == Measure("max", "share")
    assert measure("perplexity", []) == Measure("min")
    assert measure("valid_loss", []) == Measure("min", log=True)
    assert measure("forward_transfer", []).goal == "max"
    assert measure("task_force", []) == Measure("min")


def test_what_is_logged_on_the_way_is_known_before_a_run_ends(tmp_path: Path) -> None:
    rows = [{"step": 1, "split": "train", "loss": 0.5, "gradient_norm": 2.0}]
    runs = load_runs([save(tmp_path, rows=rows)])
    assert measure("gradient_norm", runs) == Measure("none", log=True)
    assert measure("loss", runs) == measure("last", runs) == Measure("min", log=True)
    assert measure("lr", runs) == Measure("none", log=True)
    assert measure("task_1", runs) == measure("task_20", runs) == Measure("max", "share")
    assert measure("accuracy", runs) == measure("solved", runs) == Measure("max", "share")
    assert measure("sparsity", runs) == Measure("none", "share")
    assert measure("steps_to_solve", runs) == Measure("min", "steps")


@pytest.mark.parametrize("name", ["gradient_norm", "task_2"])
def test_what_a_run_declares_comes_before_what_is_known(name: str, tmp_path: Path) -> None:
    said = {name: ["min", "points", False]}
    runs = load_runs([save(tmp_path, done={"test": {"loss": 2.0}, "measures": said})])
    assert measure(name, runs) == Measure("min", "points")


def test_the_rows_of_the_loops_are_all_known() -> None:
    """What the one loop, tuning, meta-training and the continual learner log, by name."""
    g = torch.Generator().manual_seed(0)
    data = Data(torch.randn(12, 4, generator=g), torch.arange(12) % 3)
    tasks = [ArrayTask(str(i), i, data, data, (0, 1, 2), valid=data) for i in (0, 1)]
    model = MLP([4, 3], generator=g)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    plan = Plan(1, 4, log_every=1, eval_every=1)
    processes: list[Process] = [
        Supervised(model, tasks[0], optimiser, plan, generator=g),
        Learner(MLP([4, 3], generator=g), Stream("two", tasks), iterations=1),
    ]
    for process in processes:
        while not process.done:
            for row in process.advance():
                names = {*row} - {"split"}
                assert all(name in ROWS or TASK.fullmatch(name) for name in names), names


def test_experiments_budgets_and_settings_are_never_averaged_together(tmp_path: Path) -> None:
    save(tmp_path, seed=0)
    save(tmp_path, seed=1, train={"lr": 0.2})
    save(tmp_path, seed=2, budget="full")
    save(tmp_path, seed=3, experiment="adding")
    found = [(v.experiment, v.budget, v.label) for v in variants(load_runs([tmp_path]))]
    assert found == [
        ("adding", "quick", "LSTM"),
        ("copy", "full", "LSTM"),
        ("copy", "quick", "LSTM (train.lr=0.1)"),
        ("copy", "quick", "LSTM (train.lr=0.2)"),
    ]


def test_two_runs_of_one_seed_are_refused(tmp_path: Path) -> None:
    save(tmp_path, seed=4)
    save(tmp_path, seed=4)
    with pytest.raises(InputError, match="one run of 'LSTM' per seed, but got two for seed 4"):
        variants(load_runs([tmp_path]))


def test_a_path_without_runs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a folder with runs at .*none, but got nothing"):
        load_runs([tmp_path / "none"])
    with pytest.raises(InputError, match=r"expected a config.toml in or below .*, but got none"):
        load_runs([tmp_path])
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="but got a file there"):
        load_runs([tmp_path / "file"])
    with pytest.raises(InputError, match="at least one folder"):
        load_runs([])


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("config.toml", "label = ", r"config.toml to be TOML, but got text that is not"),
        ("config.toml", "label = 3", r"'experiment' in .*config.toml to be str, but got None"),
        ("done.json", '{"seconds": ', r"done.json to be JSON, but got text that is not"),
        ("environment.json", "[1]", r"environment.json to hold an object, but got list"),
        ("metrics.jsonl", "3\n{}\n", r"line 1 of .*metrics.jsonl to be a JSON object .* got b'3'"),
    ],
)
def test_a_corrupt_file_is_named(tmp_path: Path, file: str, text: str, message: str) -> None:
    folder = save(tmp_path)
    (folder / file).write_text(text)
    with pytest.raises(InputError, match=message):
        load_runs([folder])


def test_sparsity_does_not_rank(tmp_path: Path) -> None:
    save(tmp_path, "pruned", done={"test": {"loss": 2.0, "sparsity": 0.9}})
    save(tmp_path, "whole", done={"test": {"loss": 1.0, "sparsity": 0.1}})
    runs = load_runs([tmp_path])
    assert main_metric(runs) == "loss"
    assert [row.label for row in summary(runs)] == ["whole", "pruned"]


def test_a_test_row_at_the_end_adds_to_that_of_the_last_task(tmp_path: Path) -> None:
    rows = [
        {"step": 10, "split": "test", "accuracy": 0.5, "task_1": 0.5},
        {"step": 20, "split": "test", "accuracy": 0.25, "task_1": 0.125},
        {"step": 20, "split": "test", "accuracy": 0.25, "forgetting": 0.375},
    ]
    (run,) = load_runs([save(tmp_path, rows=rows)])
    assert run.series("test", "task_1") == {10: 0.5, 20: 0.125}
    assert run.series("test", "forgetting") == {20: 0.375}
    assert main_metric([run]) == "accuracy"


def test_a_damaged_run_is_told_and_the_others_are_read(tmp_path: Path) -> None:
    save(tmp_path, seed=0, done=ended(0.9))
    bad = save(tmp_path, seed=1, done=ended(0.8))
    (bad / "done.json").write_text("{")
    runs, damaged = read_runs([tmp_path])
    assert [run.seed for run in runs] == [0]
    assert [one.folder for one in damaged] == [bad]
    assert "done.json to be JSON, but got text that is not" in damaged[0].reason
    with pytest.raises(InputError, match="done.json to be JSON"):
        read_runs([bad])


@pytest.mark.parametrize(
    "row",
    [
        '{"step": "10", "split": "valid", "loss": 1}',
        '{"step": 1e400, "split": "valid", "loss": 1}',
        '{"step": true, "split": "valid", "loss": 1}',
        '{"step": 100000000000000000000, "split": "valid", "loss": 1}',
        '{"step": 10, "split": 3, "loss": 1}',
        '["step", "split"]',
        "[" * 100_000,
    ],
)
def test_a_row_needs_a_step_and_a_split(tmp_path: Path, row: str) -> None:
    folder = save(tmp_path)
    (folder / "metrics.jsonl").write_text(f"{row}\n{{}}\n")
    with pytest.raises(InputError, match="line 1 of .* a JSON object with a step and a split"):
        load_runs([folder])


def test_a_number_that_no_mean_can_hold_is_none(tmp_path: Path) -> None:
    (run,) = load_runs([save(tmp_path, done={"test": {"loss": 10**400, "accuracy": 1e200}})])
    assert run.test == {}


def test_runs_of_version_1_stay_readable_though_they_are_refused_as_configurations(
    tmp_path: Path,
) -> None:
    old: dict[str, Any] = {
        "version": 1,
        "kind": "sequence",
        "train": {"lr": 0.1, "optimiser": "adam"},
    }
    folder = save(tmp_path, done=ended(0.9), **old)
    assert [row.label for row in summary(load_runs([tmp_path]))] == ["LSTM"]
    assert "LSTM" in build(load_runs([tmp_path]))
    with pytest.raises(InputError, match="to be of version 2, but it is of version 1, in which"):
        read_toml(folder / "config.toml")


def test_numbers_that_were_changed_by_hand_are_not_shown(tmp_path: Path) -> None:
    train(tiny(), tmp_path)
    folder = run_folder(tmp_path, tiny())
    end = json.loads((folder / "done.json").read_text())
    end["test"]["accuracy"] = 0.999
    (folder / "done.json").write_text(json.dumps(end))
    with pytest.raises(InputError, match="done.json is not what the run wrote"):
        load_runs([folder])
    del end["sha256"]
    (folder / "done.json").write_text(json.dumps(end))
    with pytest.raises(InputError, match="done.json has lost its checksum"):
        load_runs([folder])


def test_a_changed_digit_of_a_log_is_not_shown(tmp_path: Path) -> None:
    train(tiny(), tmp_path)
    log = run_folder(tmp_path, tiny()) / "metrics.jsonl"
    log.write_text(log.read_text().replace("1", "7", 1))
    with pytest.raises(InputError, match="metrics.jsonl is not what the run wrote"):
        load_runs([tmp_path])
