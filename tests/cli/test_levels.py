"""The table of learners of levels, read from their logs while they run."""

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from attractor.cli.levels import Board, Standing
from attractor.cli.progress import Watch
from attractor.experiments.config import RunConfig
from attractor.experiments.table import load
from attractor.experiments.train import runs_of
from attractor.runs.jobs import Ended

GROWS = "Small LSTM, GEM, Net2Net"


def configs(*changes: str) -> list[RunConfig]:
    few = ["seeds=[3, 5]", *changes]
    return list(runs_of(*load("lifelong-copy-quick", few), [GROWS, "Large LSTM"]))


def write(out: Path, config: RunConfig, rows: list[dict[str, Any]], mode: str = "a") -> None:
    folder = out / config.experiment / config.id
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "metrics.jsonl", mode) as file:
        file.write("".join(f"{json.dumps(row)}\n" for row in rows))


def judged(level: int, accuracy: float, passed: float) -> dict[str, Any]:
    return {"step": 1, "split": "test", "level": level, "current_accuracy": accuracy} | {
        "passed": passed
    }


def trained(level: int) -> dict[str, Any]:
    return {"step": 1, "split": "train", "loss": 0.5, "level": level}


def shown(board: Board) -> list[str]:
    console = Console(width=120, force_terminal=False)
    with console.capture() as said:
        console.print(board.table())
    return [" ".join(line.split()) for line in said.get().splitlines()]


def test_a_row_for_each_model_and_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = configs()
    board = Board(every, tmp_path)
    now = [100.0]
    monkeypatch.setattr("attractor.cli.levels.time.monotonic", lambda: now[0])
    assert [row.endswith("waits") for row in shown(board)] == [False, True, True, True, True]
    small = next(one for one in every if one.label == GROWS and one.seed == 3)
    write(tmp_path, small, [trained(1), judged(1, 0.8512, 1.0), trained(2)])
    board.look()
    now[0] += 75
    board.look()
    assert f"{GROWS} 3 2 1 0.851 32 1 min 15 s" in shown(board)
    write(tmp_path, small, [judged(2, 0.5, 0.0), trained(2)])  # it has grown
    board.look()
    assert f"{GROWS} 3 2 1 0.500 64 1 min 15 s" in shown(board)
    write(tmp_path, small, [judged(2, 0.81, 1.0), trained(3), judged(3, 0.3, 0.0)])
    board.end(small, "done")
    now[0] += 500
    board.look()
    assert f"{GROWS} 3 3 2 0.300 64 1 min 15 s done" in shown(board)  # the last failure is the end
    assert sum(row.endswith("waits") for row in shown(board)) == 3


def test_units_double_at_each_further_growth(tmp_path: Path) -> None:
    config = configs("train.growths=2", "train.grow_to=48")[0]
    one = Standing(config, tmp_path / "none")
    sizes = []
    for _ in range(4):
        sizes.append(one.units)
        one.failures += 1
    assert sizes == [config.model_dump()["model"]["hidden_size"], 48, 96, 96]


def test_half_lines_wait_and_what_a_checkpoint_cut_off_is_forgotten(tmp_path: Path) -> None:
    config = configs()[0]
    one = Standing(config, tmp_path / config.experiment / config.id / "metrics.jsonl")
    one.read(0.0)
    assert one.began is None
    write(tmp_path, config, [judged(1, 0.9, 1.0), judged(2, 0.9, 1.0)])
    with open(one.path, "a") as file:
        file.write('{"step": 9, "level": 7')
    one.read(1.0)
    assert (one.level, one.completed) == (2, 2)
    write(tmp_path, config, [judged(1, 0.7, 1.0)], mode="w")
    one.read(2.0)
    assert (one.level, one.completed, one.accuracy) == (1, 1, 0.7)


def test_a_terminal_has_the_table_in_the_place_of_bars(tmp_path: Path) -> None:
    every = configs()
    other = runs_of(*load("permuted-mnist"))[0]
    watch = Watch([*every, other], tmp_path, quiet=True)
    write(tmp_path, every[0], [trained(4)])
    row = {"step": 3, "loss": 0.5}
    watch._draw({every[0].id: row, other.id: row})
    assert list(watch.bars) == [other.id]
    console = Console(width=120, force_terminal=True, color_system=None)
    with console.capture() as said:
        console.print(watch.progress.get_renderable())
    assert "completed" in said.get()
    assert f"{every[0].label}" in said.get()


def test_a_pipe_has_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    every = configs()
    with Watch(every[:1], tmp_path, quiet=False) as watch:
        key = every[0].id
        assert "level 2, loss" in watch._line(key, watch.open[key], trained(2))
        watch.end(Ended(every[0], "done"))
    said = capsys.readouterr().err
    assert "[1/1]" in said
    assert "completed" not in said


def test_brackets_in_a_label_are_no_markup(tmp_path: Path) -> None:
    config = configs()[0].model_copy(update={"label": "GRU [/b] [big]"})
    assert any("GRU [/b] [big]" in row for row in shown(Board([config], tmp_path)))


def test_other_kinds_have_no_table(tmp_path: Path) -> None:
    board = Board(runs_of(*load("permuted-mnist"))[:1], tmp_path)
    assert board.standings == {}


def test_a_model_is_named_with_the_point_of_a_grid(tmp_path: Path) -> None:
    every = [*configs(), *configs("train.growths=7")]
    told = shown(Board(every, tmp_path))
    assert any(row.startswith("Large LSTM (train.growths=7) 3") for row in told), told
