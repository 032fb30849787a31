"""A run that is killed at any moment goes on, and ends with the same numbers, bit for bit."""

import os
import random
import signal
import time
from pathlib import Path

import pytest
import torch

from attractor.experiments.train import run_folder, train
from attractor.files import write_atomic
from attractor.optimisers import load_rule
from attractor.runs import checkpoint
from attractor.tasks.streams.incremental import SETTINGS
from attractor.training.process import Stopped
from experiments.helpers import (
    TINY,
    TINY_OPTIMISERS,
    TINY_STREAM,
    attractor,
    called,
    numbers,
    one,
    tiny,
)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run as it is when nothing happens to it."""
    out = tmp_path_factory.mktemp("unbroken")
    train(tiny(), out)
    return run_folder(out, tiny())


@pytest.mark.timeout(600)
@pytest.mark.parametrize("wanted", [8, pytest.param(24, marks=pytest.mark.slow)])
def test_kill_9_at_random_moments(wanted: int, unbroken: Path, tmp_path: Path) -> None:
    """Kill points are spread over start-up, training, checkpoints and the end, in real processes.

    Each process is killed a random while after its run folder shows life, so that hits fall
    inside training and not only into the import of torch.
    """
    config = tiny()
    folder = run_folder(tmp_path, config)
    rng = random.Random(0)
    kills, in_training, after_checkpoint = 0, 0, 0
    while kills < wanted:
        process = attractor("run", TINY, "--only", "GRU", "--seed", "0", "--out", tmp_path, "-q")
        metrics = folder / "metrics.jsonl"
        before = metrics.stat().st_size if metrics.exists() else 0
        early = rng.random() < 0.25  # of all kills, however long a start takes on this machine
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if early or (metrics.exists() and metrics.stat().st_size != before):
                break
            time.sleep(0.02)
        time.sleep(rng.random() * (2.0 if early else 0.15))
        ended = process.poll() is not None
        if not ended:
            os.killpg(process.pid, signal.SIGKILL)
        _, complaint = process.communicate()
        if ended:
            assert process.returncode == 0, complaint
            # it got to its end: start over, to have something to kill
            assert numbers(folder) == numbers(unbroken)
            for path in folder.iterdir():
                path.unlink()
        else:
            kills += 1
            in_training += metrics.exists() and metrics.stat().st_size != before
            after_checkpoint += (folder / checkpoint.CURRENT).exists()
            for path in folder.glob("checkpoint*.safetensors") if folder.exists() else ():
                assert checkpoint.read_state(path) is not None, "a half-written checkpoint"
    assert in_training >= wanted / 3, f"only {in_training} of {kills} kills fell into training"
    assert after_checkpoint >= wanted / 3, f"only {after_checkpoint} kills fell behind a checkpoint"
    final = called("run", TINY, "--only", "GRU", "--seed", "0", "--out", tmp_path, "-q")
    assert final.returncode == 0, final.stderr
    assert numbers(folder) == numbers(unbroken)
    left = {path.name for path in folder.iterdir()}
    expected = {path.name for path in unbroken.iterdir()}
    assert {name for name in left if not name.startswith(".")} == {
        name for name in expected if not name.startswith(".")
    }


FEATURES = """
import torch
from attractor.tasks.images.task import Images
from attractor.tasks.streams import incremental_images
from attractor.tasks.streams.incremental import SETTINGS

def small_images(half, root, batches=5):
    y = torch.arange(40) % 10
    return Images((torch.arange(192).view(3, 8, 8) + 5 * y[:, None, None, None]).byte(), y)

SETTINGS["cifar10"] = SETTINGS["cifar10"]._replace(load=small_images)

def stream(*, part: str = "rest", root=None):
    return incremental_images(dataset="cifar10", part=part, batches=1)
"""
LONGER = ("train.steps=40",)
SEEN = (
    *("stream.name=own_features:stream", "train.steps=10"),
    "features={model={name='resnet', depth=20}, steps=12, batch_size=6, lr=0.01}",
)


def seen(folder: Path) -> None:
    """Write a run on features, of a stream that real processes find beside its file."""
    (folder / "own_features.py").write_text(FEATURES)
    text = TINY_STREAM.read_text().replace('name = "permuted_images"', "").replace("tasks = 3", "")
    (folder / "seen.toml").write_text(text.replace('dataset = "digits"', ""))


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("file", "label", "changes"),
    [
        (TINY_OPTIMISERS, "LSTM", (*LONGER, "meta.learners=8")),
        pytest.param(
            TINY_OPTIMISERS, "MTL2L, PES", (*LONGER, "meta.updates=12"), marks=pytest.mark.slow
        ),
        pytest.param(
            TINY_OPTIMISERS, "Adam, tuned", (*LONGER, "train.tune_steps=20"), marks=pytest.mark.slow
        ),
        (TINY_STREAM, "both", LONGER),
        (Path("seen.toml"), "naive", SEEN),
    ],
    ids=["meta-trained", "evolved", "tuned", "continual", "features"],
)
def test_kill_9_whatever_is_on_its_way(
    file: Path,
    label: str,
    changes: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Killed as what comes first goes on, and as what follows does."""
    if not file.is_absolute():
        seen(tmp_path)
        monkeypatch.setitem(SETTINGS, "cifar10", SETTINGS["cifar10"])  # whose end is as its start
        file = tmp_path / file
    config = one(file, label, changes)
    train(config, tmp_path / "whole")
    asked = [word for change in changes for word in ("--set", change)]
    out = tmp_path / "broken"
    command = ("run", str(file), "--only", label, "--seed", "0", *asked, "--out", str(out), "-q")
    kill(command, out, times=2)
    last = called(*command)
    assert last.returncode == 0, last.stderr
    assert numbers(run_folder(out, config)) == numbers(run_folder(tmp_path / "whole", config))
    logs = [sorted(one.rglob("features/*/metrics.jsonl")) for one in (tmp_path / "whole", out)]
    assert len(logs[0]) == len(logs[1]) == (config.model_dump().get("features") is not None)
    assert [log.read_bytes() for log in logs[0]] == [log.read_bytes() for log in logs[1]]


@pytest.mark.timeout(300)
def test_kill_9_in_meta_training_into_a_file(tmp_path: Path) -> None:
    longer = ("--set", "meta.learners=12")
    command = ("meta", "train", TINY_OPTIMISERS, "--only", "LSTM", *longer, "-q", "--out")
    whole, broken = (tmp_path / name / "rule.safetensors" for name in ("whole", "broken"))
    for path in (whole, broken):
        path.parent.mkdir()
    assert called(*command, whole).returncode == 0
    kill((*command, broken), broken.parent, times=2)
    assert called(*command, broken).returncode == 0
    one, other = (dict(load_rule(path).named_parameters()) for path in (whole, broken))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert [path.name for path in broken.parent.iterdir()] == ["rule.safetensors"]


def kill(command: tuple[str | Path, ...], out: Path, *, times: int) -> None:
    """Start a command so often, and kill it a random while after its logs show life."""
    rng = random.Random(0)
    hits = 0
    for _ in range(times):
        before = logged(out)
        process = attractor(*command)
        while process.poll() is None and logged(out) == before:
            time.sleep(0.01)
        time.sleep(rng.random() * 0.1)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            hits += 1
        process.communicate()
    assert hits, "all got to their end before they were killed"


def logged(out: Path) -> dict[Path, int]:
    return {path: path.stat().st_size for path in out.rglob("metrics.jsonl")}


def test_stopped_after_every_single_step(unbroken: Path, tmp_path: Path) -> None:
    stops = 0
    while True:
        try:
            train(tiny(), tmp_path, stop=lambda: True)
        except Stopped:
            stops += 1
            continue
        break
    assert stops == 60
    assert numbers(run_folder(tmp_path, tiny())) == numbers(unbroken)


@pytest.mark.parametrize("how", ["cut", "flipped", "emptied", "both"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(
    how: str, unbroken: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    countdown = iter(range(30))
    with pytest.raises(Stopped):
        train(tiny(), tmp_path, stop=lambda: next(countdown) == 29)
    folder = run_folder(tmp_path, tiny())
    path = folder / checkpoint.CURRENT
    content = path.read_bytes()
    if how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "emptied":
        path.write_bytes(b"")
    else:
        path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    if how == "both":
        (folder / checkpoint.PREVIOUS).write_bytes(b"nonsense")
    steps: list[int] = []
    train(tiny(), tmp_path, stop=lambda: bool(steps.append(1)))  # type: ignore[func-returns-value]
    assert "is damaged or of an older release; going back to what was before it" in caplog.text
    assert len(steps) == (60 if how == "both" else 60 - 28)
    assert numbers(folder) == numbers(unbroken)


def test_stopped_twice_between_two_rows_of_metrics(tmp_path: Path) -> None:
    """A log that was cut on resuming must be measured by its new length, not its old."""
    config = tiny("train.log_every=5", "train.checkpoint_every=10")
    train(config, tmp_path / "whole")
    folder = run_folder(tmp_path, config)

    def stopping_after(steps: int) -> None:
        countdown = iter(range(steps))
        with pytest.raises(Stopped):
            train(config, tmp_path, stop=lambda: next(countdown) == steps - 1)

    stopping_after(10)
    with open(folder / "metrics.jsonl", "ab") as file:  # what a killed process had got to
        file.write(b'{"step": 15, "split": "train"}\n{"step": 20, "spl')
    stopping_after(3)
    steps: list[int] = []
    train(config, tmp_path, stop=lambda: bool(steps.append(1)))  # type: ignore[func-returns-value]
    assert len(steps) == 60 - 13
    assert numbers(folder) == numbers(run_folder(tmp_path / "whole", config))


def test_what_a_killed_process_was_writing_is_swept_away(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, tiny())
    folder.mkdir(parents=True)
    (folder / ".checkpoint.safetensors.abc").touch()
    train(tiny(), tmp_path)
    assert [path.name for path in folder.glob(".*")] in ([], [".lock"])


def test_a_disk_without_second_names(
    unbroken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", link)
    train(tiny(), tmp_path)
    folder = run_folder(tmp_path, tiny())
    assert numbers(folder) == numbers(unbroken)
    assert len(list(checkpoint.candidates(folder))) == 2


def test_lost_metrics_are_made_again(unbroken: Path, tmp_path: Path) -> None:
    countdown = iter(range(30))
    with pytest.raises(Stopped):
        train(tiny(), tmp_path, stop=lambda: next(countdown) == 29)
    folder = run_folder(tmp_path, tiny())
    (folder / "metrics.jsonl").write_bytes(b'{"step": 1, "split": "tr')
    train(tiny(), tmp_path)
    assert numbers(folder) == numbers(unbroken)


def test_a_finished_run_is_left_alone_unless_forced(unbroken: Path, tmp_path: Path) -> None:
    train(tiny(), tmp_path)
    folder = run_folder(tmp_path, tiny())
    before = (folder / "done.json").stat().st_mtime_ns
    train(tiny(), tmp_path)
    assert (folder / "done.json").stat().st_mtime_ns == before
    train(tiny(), tmp_path, force=True)
    assert (folder / "done.json").stat().st_mtime_ns != before
    assert numbers(folder) == numbers(unbroken)


def test_each_seed_and_model_has_its_own_numbers(unbroken: Path, tmp_path: Path) -> None:
    train(tiny(seed=1), tmp_path)
    assert numbers(run_folder(tmp_path, tiny(seed=1)))[0] != numbers(unbroken)[0]


def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_atomic(path, "old")

    def replace(*_: object) -> None:
        raise RuntimeError("killed here")

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(RuntimeError):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
