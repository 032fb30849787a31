"""The tables and their numbers."""

import json
from pathlib import Path
from typing import Any

import pytest

from attractor.estimates import estimate
from attractor.measures import Measure
from attractor.report.drill import drill
from attractor.report.tables import (
    common_settings,
    environment,
    own_settings,
    result_table,
    shown,
)
from attractor.results import variants
from attractor.results.numbers import duration, is_share, plain, plural, with_interval
from attractor.runs.read import load_runs


def test_the_table_of_results(runs_root: Path) -> None:
    table = result_table(load_runs([runs_root]))
    assert table.headings == (
        "Rank",
        "Test accuracy, %",
        "Behind the best",
        "Median",
        "Test loss",
        "Seeds",
        "Parameters",
        "Time",
        "Status",
    )
    assert [row.label for row in table.rows] == ["NRU", "GRU", "LSTM"]
    assert [row.cells[-1].text for row in table.rows] == ["1 failed, 1 unfinished", "done", "done"]
    assert [row.cells[5].text for row in table.rows] == ["1 of 3", "3", "3"]
    # one seed of NRU is shared: it has the best mean, and nothing is shown
    assert [row.cells[1].best for row in table.rows] == [False, False, False]
    assert [row.cells[2].text.partition(", ")[2] or row.cells[2].text for row in table.rows] == [
        "best mean",
        "few seeds",
        "few seeds",
    ]
    assert "higher is better" in table.note


def test_strips_share_a_scale_and_stay_on_it(runs_root: Path) -> None:
    table = result_table(load_runs([runs_root]))
    strips = {row.label: row.strip for row in table.rows}
    for strip in strips.values():
        assert strip is not None
        assert all(0 <= place <= 120 for place in (strip.mean, *strip.seeds))
    single, several = strips["NRU"], strips["GRU"]
    assert single is not None
    assert several is not None
    assert single.low is None
    assert several.low is not None
    assert several.high is not None
    assert several.low < several.mean < several.high
    assert several.mean < single.mean


def test_one_variant_alone_is_not_called_best(tmp_path: Path, write_run: Any) -> None:
    write_run(tmp_path)
    (row,) = result_table(load_runs([tmp_path])).rows
    assert not any(cell.best for cell in row.cells)


def test_settings_are_split_into_common_and_own(runs_root: Path) -> None:
    runs = load_runs([runs_root])
    common = common_settings(runs)
    assert common["train"] == {"steps": "1000", "batch_size": "32", "lr": "0.001"}
    assert common["model"] == {"hidden_size": "128"}
    keys, rows = own_settings(variants(runs))
    assert keys == ["model.cell"]
    assert rows == [("GRU", ["gru"]), ("LSTM", ["lstm"]), ("NRU", ["nru"])]


def test_the_environment_counts_what_differs(runs_root: Path) -> None:
    found = dict(environment(load_runs([runs_root])))
    assert found["torch"] == [("2.13.0", 9)]


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (None, "–"), ([1, "a"], "[1, a]"), (0.001, "0.001"), ({"a": 1}, "a = 1")],
)
def test_settings_look_as_in_the_file(value: Any, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    ("values", "share", "text"),
    [
        ([0.5], False, "0.5000"),
        ([0.5], True, "50.00"),
        ([0.9, 0.9], True, "90.00 ± 0"),
        ([1.0, 2.0, 3.0], False, "2.0 ± 2.5"),
        ([1000.0, 3000.0, 5000.0], False, "3,000 ± 4,968"),
        ([-0.5, 0.4, 0.09], False, "0.0 ± 1.1"),
        ([1e-9, 2e-9, 3e-9], False, "2e-09 ± 2.5e-09"),
    ],
)
def test_means_are_rounded_to_what_is_known(values: list[float], share: bool, text: str) -> None:
    assert with_interval(estimate(values), share) == text


def test_a_column_has_as_many_decimals_in_each_row(tmp_path: Path, write_run: Any) -> None:
    scores = (0.456, 0.38, 0.372)
    for number, score in enumerate(scores):
        path = write_run(tmp_path, f"{number} net") / "done.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"test": {"accuracy": score}}))
    runs = load_runs([tmp_path])
    made = result_table(runs)
    column = made.headings.index("Median")
    for place in (1, column):
        assert [row.cells[place].text for row in made.rows] == ["45.6", "38.0", "37.2"]
    told = drill(variants(runs), runs)
    assert [row.cells[2].text for row in told.rows] == ["45.6", "38.0", "37.2"]
    assert told.headings[2] == "Accuracy, %"


def test_the_ends_of_a_strip_are_shares_where_all_is_one(tmp_path: Path, write_run: Any) -> None:
    path = write_run(tmp_path) / "done.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"test": {"accuracy": 0.896}}))
    scale = result_table(load_runs([tmp_path])).scale
    assert scale is not None
    assert float(scale[1]) <= 100


def test_small_words() -> None:
    assert [duration(s) for s in (None, 0.81, 41.2, 200.0, 7500.0)] == [
        "–",
        "0.8 s",
        "41 s",
        "3 min 20 s",
        "2 h 05 min",
    ]
    assert (plural(1, "run"), plural(2, "run")) == ("1 run", "2 runs")
    assert (plain(None), plain(0.0)) == ("–", "0")
    assert is_share(Measure("max", "share"), [-1.0, 0.0, 1.0])
    assert not is_share(Measure("max", "share"), [97.0])
    assert not is_share(Measure("max"), [0.5])


def test_headings_name_the_split_that_was_measured(write_run: Any, tmp_path: Path) -> None:
    folders = [write_run(tmp_path, "LSTM", seed) for seed in (0, 1)]
    for folder, heading in zip(
        folders, ("Held-out accuracy, %", "Validation accuracy, %"), strict=True
    ):
        done = json.loads((folder / "done.json").read_text())
        (folder / "done.json").write_text(json.dumps(done | {"split": "valid"}))
        made = result_table(load_runs([tmp_path]))
        assert heading in made.headings
        assert heading.split(",")[0].lower() in made.note


def test_how_sparse_a_network_is_makes_it_neither_best_nor_worst(
    write_run: Any, tmp_path: Path
) -> None:
    for label, sparsity in (("LSTM", 0.9), ("GRU", 0.2)):
        path = write_run(tmp_path, label) / "done.json"
        done = json.loads(path.read_text())
        done["test"]["sparsity"] = sparsity
        path.write_text(json.dumps(done))
    made = result_table(load_runs([tmp_path]))
    column = made.headings.index("Test sparsity, %")
    assert {row.label: row.cells[column].best for row in made.rows} == {"LSTM": False, "GRU": False}
    best = made.headings.index("Behind the best")
    assert made.rows[0].cells[best].text == "best mean"
