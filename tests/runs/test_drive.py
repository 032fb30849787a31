"""One drive: it saves, stops and goes on with the same numbers, and notices what was changed."""

import json
import logging
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from attractor.errors import InputError
from attractor.runs import checkpoint
from attractor.runs import drive as driving
from attractor.runs.drive import Context, Every, drive, never
from attractor.runs.environment import environment, read
from attractor.runs.folder import BusyError, damage, is_open, keep, locked, repeat
from attractor.team import Team
from attractor.training.process import Diverged, Stopped
from runs.counting import Counting


def go(
    folder: Path,
    make: Callable[[], Counting] = Counting,
    *,
    key: str = "counting",
    stop: Callable[[], bool] = never,
    **options: Any,
) -> None:
    context = Context(out=folder.parent, stop=stop)
    drive(make, folder, key=key, outcome=Counting.outcome, context=context, **options)


def numbers(folder: Path) -> tuple[bytes, dict[str, Any]]:
    done = json.loads((folder / "done.json").read_text())
    del done["seconds"], done["sha256"]
    return (folder / "metrics.jsonl").read_bytes(), done


def after(count: int) -> Callable[[], bool]:
    """Says to stop when it is asked for the so-manieth time."""
    left = iter(range(count))
    return lambda: next(left) == count - 1


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    go(tmp_path / "whole")
    return tmp_path / "whole"


@pytest.mark.parametrize("error", [FileNotFoundError, FileExistsError])
def test_a_folder_that_is_taken_away_as_it_is_made_is_made_again(
    error: type[OSError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a process that made it too, put nothing into it, and so removed it."""
    times, mkdir = iter(range(3)), Path.mkdir

    def too_late(path: Path, *arguments: Any, **options: Any) -> None:
        if next(times, 2) < 2:
            raise error(path)
        mkdir(path, *arguments, **options)

    folder = tmp_path / "out" / "run"
    monkeypatch.setattr(Path, "mkdir", too_late)
    with locked(folder, wait=True):
        assert (folder / ".lock").exists()
    assert next(times, None) is None
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    with pytest.raises(InputError, match="to be able to write .*run, but got: File exists"):
        go(tmp_path / "run")


def test_a_process_is_logged_and_ends(whole: Path) -> None:
    rows = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    assert [(row["step"], row["split"]) for row in rows] == [
        *((step, "train") for step in (1, 3, 5, 7, 9)),
        (9, "test"),
    ]
    assert numbers(whole)[1]["steps"] == 9
    assert {path.name for path in whole.iterdir()} >= {"environment.json", "checkpoint.safetensors"}
    assert not (whole / "status.json").exists()


def test_stopped_after_every_step(whole: Path, tmp_path: Path) -> None:
    stops = 0
    while True:
        try:
            go(tmp_path / "broken", stop=lambda: True)
        except Stopped:
            stops += 1
            continue
        break
    assert stops == 9
    assert numbers(tmp_path / "broken") == numbers(whole)


def test_it_is_saved_by_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a step takes, no more than the interval is lost; here each takes four seconds."""
    now = [100.0]
    saved: list[float] = []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    whole = checkpoint.write

    def write(folder: Path, state: Any) -> None:
        saved.append(state["process"]["step"])
        whole(folder, state)

    def later(process: Counting, rows: object) -> None:
        now[0] += 4

    monkeypatch.setattr(checkpoint, "write", write)
    go(tmp_path / "run", watch=later)
    assert saved == [3, 6, 9]


def test_checkpoints_that_take_long_come_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    saved: list[float] = []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def write(folder: Path, state: Any) -> None:
        now[0] += 2  # so that they come every 40 seconds
        saved.append(state["process"]["step"])

    def later(process: Counting, rows: object) -> None:
        now[0] += 10

    monkeypatch.setattr(checkpoint, "write", write)
    go(tmp_path / "run", watch=later)
    assert saved == [1, 5, 9]


def test_the_lock_is_taken_before_anything_is_built(tmp_path: Path) -> None:
    built: list[int] = []

    def make() -> Counting:
        built.append(1)
        return Counting()

    with locked(tmp_path / "run", wait=False), pytest.raises(BusyError):
        go(tmp_path / "run", make)
    assert not built
    assert not (tmp_path / "run").exists()


def test_what_cannot_be_built_leaves_no_folder(tmp_path: Path) -> None:
    def make() -> Counting:
        raise InputError("expected another name")

    with pytest.raises(InputError):
        go(tmp_path / "new" / "deep" / "run", make)
    assert not (tmp_path / "new").exists()


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        go(tmp_path / "run", stop=after(2))
    with pytest.raises(InputError, match="the checkpoints of other, but they are of counting"):
        go(tmp_path / "run", key="other")


def test_one_that_diverges_says_so_and_keeps_its_checkpoint(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(Diverged, match="the total became nan"):
        go(folder, partial(Counting, breaks_at=6), every=Every(steps=2))
    assert json.loads((folder / "failed.json").read_text()) == {
        "step": 6,
        "reason": "the total became nan",
    }
    assert next(checkpoint.candidates(folder))["process"]["step"] == 4
    go(folder)
    assert not (folder / "failed.json").exists()


@pytest.mark.parametrize("content", ["{}", "", "[]", "7", '{"steps": 9, "sha256": "0", "log": ""}'])
def test_a_changed_end_is_noticed_and_made_again(
    content: str, whole: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = numbers(whole)
    (whole / "done.json").write_text(content)
    assert damage(whole).startswith("done.json")
    assert is_open(whole)
    asked: list[int] = []
    go(whole, stop=lambda: bool(asked.append(1)))  # type: ignore[func-returns-value]
    assert not asked, "it had a checkpoint of its end"
    assert "done.json" in caplog.text
    assert numbers(whole) == before


def test_a_changed_digit_of_an_end_is_noticed(whole: Path) -> None:
    text = (whole / "done.json").read_text()
    (whole / "done.json").write_text(text.replace('"steps": 9', '"steps": 8'))
    assert damage(whole) == "done.json is not what the run wrote"


@pytest.mark.parametrize("finished", [True, False])
def test_a_changed_digit_of_the_log_is_noticed_and_made_again(
    finished: bool, whole: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "run"
    try:
        go(folder, stop=never if finished else after(6), every=Every(steps=1))
    except Stopped:
        assert not finished
    log = folder / "metrics.jsonl"
    log.write_text(log.read_text().replace('"step": 3', '"step": 4'))
    assert is_open(folder)
    asked: list[int] = []
    go(folder, stop=lambda: bool(asked.append(1)))  # type: ignore[func-returns-value]
    assert "another log than its checkpoint" in caplog.text
    assert len(asked) == 9
    assert numbers(folder) == numbers(whole)


def test_runs_of_earlier_releases_have_no_checksum(whole: Path) -> None:
    done = json.loads((whole / "done.json").read_text())
    (whole / "done.json").write_text(json.dumps({"steps": done["steps"], "test": done["test"]}))
    assert damage(whole) == ""


def test_it_is_not_done_without_the_file_that_it_makes(tmp_path: Path) -> None:
    made = tmp_path / "result"
    times: list[int] = []

    def outcome(process: Counting) -> dict[str, Any]:
        made.write_text("42")
        times.append(process.step)
        return {}

    for _ in range(2):
        drive(
            Counting, tmp_path / "run", key="a", outcome=outcome, context=Context(), makes=made
        )  # fmt: skip
    assert times == [9]
    made.unlink()
    drive(Counting, tmp_path / "run", key="a", outcome=outcome, context=Context(), makes=made)
    assert times == [9, 9]


def test_where_it_ran_is_kept_for_every_stretch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "run"
    here = environment(1)
    for torch_version in ("2.1", "2.2", "2.2"):
        monkeypatch.setattr(driving, "environment", lambda n, v=torch_version: here | {"torch": v})
        caplog.clear()
        with pytest.raises(Stopped):
            go(folder, stop=after(2), data=lambda process: "abc")
        expected = "torch 2.1 and 2.2; its numbers may differ"
        assert (expected in caplog.text) == (
            torch_version == "2.2" and len(read(folder)["resumed"]) == 1
        )
    found = read(folder)
    assert (found["torch"], found["data"]) == ("2.1", "abc")
    assert [(one["step"], one["torch"]) for one in found["resumed"]] == [(2, "2.2"), (4, "2.2")]


def test_a_run_that_starts_anew_has_one_environment(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(Stopped):
        go(folder, stop=after(2))
    (folder / "checkpoint.safetensors").unlink()
    go(folder)
    assert "resumed" not in read(folder)


def test_what_another_call_left_marked_stops_no_run_from_being_done_again(
    tmp_path: Path, whole: Path
) -> None:
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        shutil.copytree(whole, folder)
    repeat(folders[:1])  # for one run alone, and stopped before it began
    repeat(folders)
    assert all(is_open(folder) for folder in folders)


def test_doing_it_again_goes_on_where_it_was_stopped(tmp_path: Path, whole: Path) -> None:
    """What ``--force`` does: three runs again, two of them stopped, and the same once more."""
    folders = [tmp_path / str(number) for number in range(3)]
    for folder in folders:
        go(folder)
    times = [(folder / "done.json").stat().st_mtime_ns for folder in folders]
    repeat(folders)
    assert [is_open(folder) for folder in folders] == [True] * 3
    assert (folders[2] / "done.json").exists(), "what it came to stays until it starts again"
    go(folders[0])
    for folder, steps in zip(folders[1:], (4, 2), strict=True):
        with pytest.raises(Stopped):
            go(folder, stop=after(steps))
    repeat(folders)
    assert [is_open(folder) for folder in folders] == [False, True, True]
    asked: list[int] = []
    for folder in folders:
        go(folder, stop=lambda: bool(asked.append(1)))  # type: ignore[func-returns-value]
    assert len(asked) == 5 + 7
    assert all(numbers(folder) == numbers(whole) for folder in folders)
    again = [(folder / "done.json").stat().st_mtime_ns for folder in folders]
    assert all(new > old for new, old in zip(again, times, strict=True))
    repeat(folders)
    assert [is_open(folder) for folder in folders] == [True] * 3
    keep(folders)
    assert [is_open(folder) for folder in folders] == [False] * 3


def test_how_far_it_is_can_be_read_by_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    seen = []

    def later(process: Counting, rows: object) -> None:
        now[0] += 0.5
        status = tmp_path / "run" / "status.json"
        seen.append(json.loads(status.read_text()) if status.exists() else {"step": 0})

    started = time.time()
    go(tmp_path / "run", watch=later)
    assert [one["step"] for one in seen] == [0, 0, 2, 2, 4, 4, 6, 6, 8]
    assert seen[-1]["rate"] == 2.0
    assert started <= seen[-1]["time"] <= time.time()


def test_tensors_are_read_into_memory_of_their_own(tmp_path: Path) -> None:
    go(tmp_path / "run")
    path = tmp_path / "run" / checkpoint.CURRENT
    before = next(checkpoint.candidates(tmp_path / "run"))["process"]["total"]
    kept = before.clone()
    path.write_bytes(bytes(path.stat().st_size))
    assert before.equal(kept)


def test_nothing_is_said_of_a_run_that_goes_on_at_home(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        with pytest.raises(Stopped):
            go(tmp_path / "run", stop=after(2))
        go(tmp_path / "run")
    assert caplog.text == ""


def test_one_that_follows_takes_the_same_steps_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def follow(*said: tuple[bool, ...]) -> list[Counting]:
        """A drive by the second process of a team, as the first says."""
        answers, made = iter(said), []

        def make() -> Counting:
            made.append(Counting(steps=3))
            return made[-1]

        monkeypatch.setattr(driving, "team", lambda: Team(1, 2))
        monkeypatch.setattr(driving, "agreed", lambda *_: next(answers))
        go(tmp_path / "run", make)
        return made

    goes_on, stops = (False, True), (True, False)
    assert follow((False,)) == []  # the run was done
    assert [one.step for one in follow((True,), goes_on, goes_on, goes_on)] == [3]
    with pytest.raises(Stopped):
        follow((True,), goes_on, stops)
    assert not (tmp_path / "run").exists()
