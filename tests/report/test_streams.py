"""Tasks in turn: where they end, and what is kept of each; and how optimisers are trained."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from attractor.continual.lifelong.measures import LifelongResult
from attractor.experiments.kinds import KINDS
from attractor.experiments.kinds.lifelong import outcome
from attractor.report import build
from attractor.report.chapter import chapter
from attractor.report.figures import learning_curves
from attractor.report.levels import is_of_levels
from attractor.report.parts import PARTS
from attractor.report.streams import boundaries, matrices
from attractor.results import variants
from attractor.runs.read import load_runs

MATRIX = [[0.1, 0.1, 0.1], [0.9, 0.2, 0.1], [0.7, 0.9, 0.2], [0.5, 0.8, 0.9]]


def stream(root: Path, write_run: Any) -> None:
    for seed in range(2):
        folder = write_run(root, "ER", seed, config={"train": {"steps": 50}})
        done = json.loads((folder / "done.json").read_text())
        matrix = [[value + 0.1 * seed for value in row] for row in MATRIX]
        (folder / "done.json").write_text(json.dumps(done | {"matrix": matrix}))
        rows = [
            {"step": 50 * (k + 1), "split": "test", "accuracy": 0.5}
            | {f"task_{j + 1}": MATRIX[k + 1][j] for j in range(3)}
            for k in range(3)
        ]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "metrics.jsonl").write_text(text)


def test_tasks_end_where_runs_say(tmp_path: Path, write_run: Any) -> None:
    stream(tmp_path, write_run)
    runs = load_runs([tmp_path])
    assert boundaries(runs) == [50, 100, 150]
    made = chapter(runs)
    assert ("Steps", "50 for each of 3 tasks") in made.facts
    for figure in made.figures:
        assert [shape["x0"] for shape in figure.layout["shapes"]] == [50, 100]
        assert [note["x"] for note in figure.layout["annotations"]] == [25.0, 75.0, 125.0]
    assert [figure.title for figure in made.figures] == [
        "Test accuracy",
        "Test accuracy on task 1",
    ]
    (matrix,) = matrices(variants(runs))
    trace, numbers = matrix.traces
    assert trace["z"][1] == pytest.approx([0.95, 0.25, 0.15])
    assert (numbers["x"][3], numbers["y"][3], numbers["text"][3]) == ("1", "1", "95%")
    assert numbers["textfont"]["color"][2:5] == ["#FFF", "#000", "#FFF"]
    assert matrix.said == "after task 3: 55%, 85%, 95%"
    assert 'each task after each task; after task 3: 55%, 85%, 95%"' in build(runs)
    assert (trace["x"], trace["y"]) == (["1", "2", "3"], ["0", "1", "2", "3"])


def test_other_runs_have_neither(runs_root: Path) -> None:
    made = chapter(load_runs([runs_root]))
    assert made.matrices == []
    assert not any("shapes" in figure.layout for figure in made.figures)
    assert ("Steps", "1,000") in made.facts


def test_a_matrix_that_is_none_is_left_out(tmp_path: Path, write_run: Any) -> None:
    path = write_run(tmp_path) / "done.json"
    for wrong in ("text", [[1.0], [1.0, 2.0]], [[float("nan")]], [1.0]):
        done = json.loads(path.read_text())
        path.write_text(json.dumps(done | {"matrix": wrong}))
        assert matrices(variants(load_runs([tmp_path]))) == []


def test_meta_training_is_drawn_by_its_own_steps(tmp_path: Path, write_run: Any) -> None:
    folder = write_run(tmp_path)
    rows = [
        {"step": step, "split": "meta", "loss": 3.0 + step / 10, "last": 2.0}
        for step in range(-4, 0)
    ]
    with (folder / "metrics.jsonl").open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    drawn = {figure.title: figure for figure in learning_curves(load_runs([tmp_path]))}
    figure = drawn["Meta-training: loss of an unroll"]
    (mean,) = [trace for trace in figure.traces if trace["meta"]["kind"] == "mean"]
    assert mean["x"] == [1, 2, 3, 4]
    assert mean["y"] == pytest.approx([2.6, 2.7, 2.8, 2.9])
    assert figure.layout["xaxis"]["title"]["text"] == "meta-training step"
    assert "Meta-training: last loss" in drawn


def test_wide_intervals_of_many_variants_are_hidden_at_first(
    tmp_path: Path, write_run: Any
) -> None:
    def shown(labels: int, seeds: int) -> set[bool]:
        root = tmp_path / f"{labels}-{seeds}"
        for number in range(labels):
            for seed in range(seeds):
                write_run(root, f"{number} label", seed, steps=200)
        made = chapter(load_runs([root]))
        traces = [trace for figure in made.figures for trace in figure.traces]
        bands = {trace["visible"] for trace in traces if trace["meta"]["kind"] == "band"}
        assert bands == {made.bands}
        return bands

    assert shown(5, 3) == {False}
    assert shown(4, 3) == {True}
    assert shown(5, 5) == {True}


def test_the_best_variants_have_their_three_courses_in_one_figure(
    tmp_path: Path, write_run: Any
) -> None:
    matrix = [[0.9, 0.4, 0.2], [0.6, 0.8, 0.3]]
    for label, seed in (("LSTM", 0), ("LSTM", 1), ("GRU", 0)):
        folder = write_run(tmp_path / "runs", label, seed)
        done = json.loads((folder / "done.json").read_text())
        more = {"grew_at": [2], "matrix": matrix if seed == 0 else matrix[:1]}
        (folder / "done.json").write_text(json.dumps(done | more))
    made = chapter(load_runs([tmp_path / "runs"]))
    figure = made.figures[4]
    assert [one.title for one in made.figures[3:5]] == [
        f"{label}: current, previous and future levels" for label in ("GRU", "LSTM")
    ]
    assert all(one.layout["xaxis"]["dtick"] == 1 for one in made.figures[:5])
    assert [trace["name"] for trace in figure.traces] == [
        "the current level",
        "previous levels",
        "future levels",
    ]
    assert [trace["y"] for trace in figure.traces] == [[0.9, 0.8], [None, 0.6], [0.3, 0.3]]
    assert len({trace["line"]["dash"] for trace in figure.traces}) == 3
    assert figure.layout["showlegend"]
    assert not made.figures[0].layout["showlegend"]


@pytest.mark.parametrize(
    "broken",
    [
        {"grew_at": 3, "matrix": [[1.0]]},
        {"grew_at": ["2"], "matrix": [[1.0]]},
        {"grew_at": [], "matrix": [[1.0], [1.0, 2.0]]},
        {"grew_at": [], "matrix": [], "seconds": float("nan")},
    ],
)
def test_levels_that_make_no_sense_are_not_drawn(
    broken: dict[str, Any], tmp_path: Path, write_run: Any
) -> None:
    folder = write_run(tmp_path)
    done = json.loads((folder / "done.json").read_text())
    (folder / "done.json").write_text(json.dumps(done | broken))
    (run,) = load_runs([tmp_path])
    assert not is_of_levels(run)
    assert dict(chapter([run]).sections).get("matrix") != "Accuracy by level"


def lifelong(root: Path, write_run: Any, label: str, levels: float, accuracy: float) -> None:
    """A run of an old release through levels, which does not say what ranks."""
    folder = write_run(root, label, config={"kind": "lifelong"})
    done = json.loads((folder / "done.json").read_text())
    test = {"levels": levels, "current_accuracy": accuracy, "expansions": 0.0}
    more: dict[str, Any] = {"grew_at": [], "matrix": [[0.9, 0.4], [0.6, 0.8]], "test": test}
    more["measures"] = {"levels": ["max", "levels", False], "expansions": ["none", "", False]}
    (folder / "done.json").write_text(json.dumps(done | more))
    rows = [
        {"step": step, "split": split, "passed": 1.0, "parameters": 50 * step, "level": step / 50}
        | {"current_accuracy": 0.8, "task_1": 0.8, "task_2": 0.6}
        for step in (50, 100)
        for split in ("train", "test")
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_levels_completed_rank_and_counts_are_not_drawn(tmp_path: Path, write_run: Any) -> None:
    lifelong(tmp_path, write_run, "far", 6.0, 0.81)
    lifelong(tmp_path, write_run, "near", 2.0, 0.99)
    made = chapter(load_runs([tmp_path]))
    assert made.results.headings[1] == "Test number of levels completed"
    assert [row.label for row in made.results.rows] == ["far", "near"]
    assert made.results.rows[0].cells[1].text == "6"
    assert made.findings[0] == "far has the best mean number of levels completed: 6 over 1 seed."
    assert ("Steps", "1,000 at each level") in made.facts
    titles = {figure.title for figure in made.figures}
    assert "Test current accuracy" in titles
    for name in ("passed", "parameters", "level"):
        assert not titles & {f"Test {name}", f"Training {name}"}


def test_curves_end_with_the_last_level_and_not_with_the_mean(
    tmp_path: Path, write_run: Any
) -> None:
    lifelong(tmp_path, write_run, "far", 2.0, 0.3)
    (log,) = tmp_path.rglob("metrics.jsonl")
    mean = {"step": 150, "split": "test", "levels": 2.0, "current_accuracy": 0.3}
    log.write_text(log.read_text() + json.dumps(mean) + "\n")
    made = chapter(load_runs([tmp_path]))
    (drawn,) = [figure for figure in made.figures if figure.title == "Test current accuracy"]
    assert drawn.traces[-1]["y"] == [0.8, 0.8]


def test_a_learner_of_levels_says_that_they_rank() -> None:
    learner: Any = SimpleNamespace(
        model=nn.Linear(1, 1),
        seconds=[1.0],
        result=lambda: LifelongResult(torch.ones(1, 1), [0.9], 1, [], [2]),
    )
    assert outcome(learner)["leading"] == "levels"


def test_each_kind_contributes_its_own_parts(tmp_path: Path, write_run: Any) -> None:
    assert set(PARTS) == set(KINDS)
    rows = [{"step": s, "split": "test", "accuracy": 0.5, "task_1": 0.5} for s in (50, 100)]
    matrix = {"matrix": [[0.9, 0.4], [0.6, 0.8]], "grew_at": []}
    shown = {}
    for kind in (*KINDS, "my.module:KIND"):
        folder = write_run(tmp_path / kind, config={"kind": kind})
        done = json.loads((folder / "done.json").read_text())
        (folder / "done.json").write_text(json.dumps(done | matrix))
        (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        made = chapter(load_runs([tmp_path / kind]))
        levels = any("level" in figure.title for figure in made.figures)
        marked = any(figure.layout.get("shapes") for figure in made.figures)
        shown[kind] = (dict(made.sections).get("matrix"), levels, marked)
    assert shown == {
        "continual": ("Accuracy by task", False, True),
        "lifelong": ("Accuracy by level", True, False),
        "supervised": (None, False, False),
        "my.module:KIND": ("Accuracy by level", True, False),  # by what its runs tell
    }
