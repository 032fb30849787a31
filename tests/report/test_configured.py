"""Runs of another configuration than today's are not judged as those of the paper."""

import json
from pathlib import Path
from typing import Any

import pytest

from attractor.report import build
from attractor.report.chapter import chapter
from attractor.report.claims import claims_on
from attractor.report.comparing import findings
from attractor.report.configured import changed
from attractor.report.order import ordered
from attractor.runs.read import Run, load_runs
from report.conftest import as_today

LABELS = ("MetaSGD-CL", "ER")


def written(root: Path, write_run: Any, name: str, budget: str, **tables: Any) -> list[Run]:
    for number, label in enumerate(LABELS if name == "permuted-mnist" else ("LSTM",)):
        for seed in range(3):
            config = {"experiment": name, "budget": budget}
            folder = as_today(write_run(root, label, seed, config=config), **tables)
            done = json.loads((folder / "done.json").read_text())
            done["test"] = {"accuracy": 0.8 - 0.1 * number + 0.001 * seed}
            (folder / "done.json").write_text(json.dumps(done))
    return load_runs([root])


def test_changed_settings_take_claims_numbers_and_verdicts_away(
    tmp_path: Path, write_run: Any
) -> None:
    tables: dict[str, Any] = {"model": {"hidden": [5]}, "optimiser": {"lr": 0.3}}
    runs = written(tmp_path, write_run, "permuted-mnist", "full", **tables)
    assert {tuple(changed(run)) for run in runs} == {("model.hidden", "optimiser.lr")}
    made = chapter(runs)
    assert claims_on(runs) == {}
    assert "Published" not in made.results.headings
    assert not any("published" in said for said in made.findings)
    assert "Changed in these runs: model.hidden and optimiser.lr." in made.warnings[0]
    assert made.description.endswith("Changed in these runs: model.hidden and optimiser.lr.")
    assert made.warnings[0] in build(runs)


def test_those_as_configured_keep_them_beside_others(tmp_path: Path, write_run: Any) -> None:
    runs = written(tmp_path, write_run, "permuted-mnist", "full")
    assert not any(changed(run) for run in runs)
    assert claims_on(runs)["permuted-mnist"]
    assert "Published" in chapter(runs).results.headings
    assert chapter(runs).warnings == []
    for seed in range(3):
        (folder,) = {run.folder for run in runs if run.label == "ER" and run.seed == seed}
        as_today(folder, optimiser={"lr": 0.3})
    mixed = load_runs([tmp_path])
    assert "Changed in the runs of ER: optimiser.lr." in chapter(mixed).warnings[0]
    column = chapter(mixed).results.headings.index("Published")
    rows = {row.label: row.cells[column].text for row in chapter(mixed).results.rows}
    assert rows["ER"] == "–" != rows["MetaSGD-CL"]
    assert "Beside the published numbers: 1 " in findings(mixed)[-1]


def test_quick_runs_say_so_too(tmp_path: Path, write_run: Any) -> None:
    runs = written(tmp_path, write_run, "draw-quick", "quick", train={"steps": 40})
    assert {tuple(changed(run)) for run in runs} == {("train.steps",)}
    assert "train.steps" in chapter(runs).warnings[1]


@pytest.mark.parametrize("train", [{"device": "cuda:0"}, {"threads": 2, "checkpoint_every": 5}])
def test_where_a_run_is_done_changes_nothing(
    tmp_path: Path, write_run: Any, train: dict[str, Any]
) -> None:
    runs = written(tmp_path, write_run, "permuted-mnist", "full", train=train)
    assert not any(changed(run) for run in runs)


def test_a_label_with_what_was_overruled_is_that_of_its_variant(
    tmp_path: Path, write_run: Any
) -> None:
    (run, *_) = written(tmp_path, write_run, "permuted-mnist", "full", optimiser={"lr": 0.3})
    told = Run(
        run.folder, run.config | {"label": "ER (optimiser.lr=0.3)"}, (), {}, {}, "unfinished"
    )
    assert changed(told)
    assert not changed(Run(run.folder, run.config | {"label": "ERA"}, (), {}, {}, "unfinished"))


def test_variants_are_in_the_order_of_the_file_or_of_their_numbers(
    tmp_path: Path, write_run: Any
) -> None:
    runs = written(tmp_path / "a", write_run, "permuted-mnist", "full")
    assert list(dict.fromkeys(run.label for run in ordered(runs))) == [*LABELS]
    for rate in (10, 9, 1):
        write_run(tmp_path / "b", f"at {rate}")
    made = chapter(load_runs([tmp_path / "b"]))
    assert [key["label"] for key in made.swatches] == ["at 1", "at 9", "at 10"]


def test_different_seeds_are_said(tmp_path: Path, write_run: Any) -> None:
    for label, seeds in (("GRU", (0, 1, 2)), ("LSTM", (0, 1)), ("NRU", (0, 1, 2))):
        for seed in seeds:
            write_run(tmp_path, label, seed, config={"budget": "full"})
    (said,) = chapter(load_runs([tmp_path])).warnings
    assert said.startswith("Different seeds: 0–2 of GRU and NRU; 0, 1 of LSTM. Means and ranks")
