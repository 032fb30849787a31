"""The training loop: it learns, it says when it cannot, and others keep out."""

import errno
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock
from torch import nn

from attractor.errors import InputError, RunError
from attractor.experiments.kinds.parts import device_of
from attractor.experiments.train import build, run_all, run_folder, train
from attractor.runs import checkpoint, folder
from attractor.runs.drive import Context
from attractor.runs.engines import ENGINES, Places
from attractor.runs.folder import BusyError
from attractor.runs.log import Log
from attractor.training.process import Stopped
from attractor.training.supervised import Supervised
from experiments.helpers import rows_of as rows
from experiments.helpers import tiny


def model(*changes: str, label: str = "GRU") -> nn.Module:
    """The network of a run at its start."""
    process = build(tiny(*changes, label=label), Context()).process
    assert isinstance(process, Supervised)
    return process.model


def test_it_learns(tmp_path: Path) -> None:
    config = tiny("train.steps=150", "train.batch_size=32", label="LSTM")
    train(config, tmp_path)
    where = run_folder(tmp_path, config)
    done = json.loads((where / "done.json").read_text())
    assert done["test"]["accuracy"] > 0.5
    assert done["test"]["loss"] < rows(where, "train")[0]["loss"]
    assert [row["step"] for row in rows(where, "valid")] == [20, 40, 60, 80, 100, 120, 140]
    assert done["parameters"] == sum(p.numel() for p in model(label="LSTM").parameters())


def test_it_stops_when_solved(tmp_path: Path) -> None:
    config = tiny("train.stop_below=100")
    train(config, tmp_path)
    done = json.loads((run_folder(tmp_path, config) / "done.json").read_text())
    assert done["steps"] == 20
    assert done["test"]["solved"] == 1
    assert done["test"]["steps_to_solve"] == 20


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path: Path) -> None:
    config = tiny("optimiser={name='sgd', lr=3e38}", "train.checkpoint_every=1")
    with pytest.raises(RunError) as caught:
        train(config, tmp_path)
    text = str(caught.value)
    assert "GRU, seed 0: the loss became" in text
    assert "gradient norm" in text
    assert "The last good checkpoint is kept. Try a smaller learning rate, or another seed." in text
    where = run_folder(tmp_path, config)
    failed = json.loads((where / "failed.json").read_text())
    saved = next(checkpoint.candidates(where))
    assert saved["process"]["step"] == failed["step"] - 1
    assert not (where / "done.json").exists()


def test_a_run_that_another_process_has(tmp_path: Path) -> None:
    config = tiny()
    where = run_folder(tmp_path, config)
    where.mkdir(parents=True)
    with FileLock(where / ".lock"), pytest.raises(BusyError, match="is running in another process"):
        train(config, tmp_path)


def test_a_full_disk_keeps_what_was_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny()
    countdown = iter(range(20))
    with pytest.raises(Stopped):
        train(config, tmp_path, stop=lambda: next(countdown) == 19)
    real = os.fsync

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="the disk is full. Free some space and run the same"):
        train(config, tmp_path)
    monkeypatch.setattr(os, "fsync", real)
    assert next(checkpoint.candidates(run_folder(tmp_path, config)))["process"]["step"] == 20
    train(config, tmp_path)
    assert (run_folder(tmp_path, config) / "done.json").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_really_full_disk(tmp_path: Path) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", tmp_path], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("this machine does not let a test mount a small disk")
    try:
        with pytest.raises(InputError, match="the disk is full"):
            train(tiny("model.hidden_size=40"), tmp_path)
        left = [path.name for path in run_folder(tmp_path, tiny("model.hidden_size=40")).iterdir()]
        assert not [name for name in left if name.startswith(".") and name != ".lock"]
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "tiny").write_text("a file where a folder should be")
    with pytest.raises(InputError, match="able to write .* choose another folder with --out"):
        train(tiny(), tmp_path)


def test_unknown_names_and_options(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="known cell .* Did you mean 'gru'"):
        train(tiny("model.cell=grru"), tmp_path)
    with pytest.raises(InputError, match="known task .* Did you mean 'digits'"):
        train(tiny("task.name=digit"), tmp_path)
    with pytest.raises(InputError, match="option of the task digits .* Did you mean 'order'"):
        train(tiny("task.ordre=rows"), tmp_path)
    with pytest.raises(InputError, match="option of GRUCell .* Did you mean 'reset'"):
        train(tiny("model.resett=after"), tmp_path)
    with pytest.raises(InputError, match="peepholes to be True or False, but got 'False'"):
        train(tiny("model.peepholes=False", label="LSTM"), tmp_path)
    with pytest.raises(
        InputError, match=r"LSTMCell expects t_max to be int \| None, but got 'abc'"
    ):
        train(tiny("model.t_max=abc", label="LSTM"), tmp_path)
    with pytest.raises(InputError, match="known option of the model recurrent .* got 'generator'"):
        train(tiny("model.generator=3"), tmp_path)
    with pytest.raises(InputError, match="key of model.compose .* Did you mean 'zoneout'"):
        train(tiny("model.compose={ zoneut = 0.1 }"), tmp_path)
    with pytest.raises(InputError, match="a device that torch can use here, but got 'cuda:99'"):
        device_of("cuda:99")


def test_weights_do_not_depend_on_the_order_of_draws() -> None:
    one, other = model(), model("train.batch_size=16")
    torch.testing.assert_close(dict(one.state_dict()), dict(other.state_dict()))


def test_log_cuts_what_came_after_the_checkpoint(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.add(step=1)
        mark = log.mark
        log.add(step=2)
    with Log(tmp_path, mark) as log:
        log.add(step=3)
    assert (tmp_path / "metrics.jsonl").read_text() == '{"step": 1}\n{"step": 3}\n'


def test_regularisers_from_a_configuration(tmp_path: Path) -> None:
    config = tiny("model.compose={ recurrent_dropout = 0.1, zoneout = [0.0, 0.1] }", label="GRU")
    train(config, tmp_path)
    assert (run_folder(tmp_path, config) / "done.json").exists()


def test_compiling_needs_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(InputError, match="a C\\+\\+ compiler .* but there is no no-such-compiler"):
        train(tiny("train.compile=true"), tmp_path)


def test_a_half_forgotten_run_is_not_done(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("done.json", "config.toml", ".lock"):
        (tmp_path / name).touch()
    folder.clear(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {".lock", "sub"}


def test_runs_together_have_room_for_the_one_with_most_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def engine(configs: Any, do: Any, *, threads: int, **more: Any) -> list[Any]:
        asked.append(threads)
        return []

    monkeypatch.setitem(ENGINES, "local", engine)
    some = [tiny(f"train.threads={count}") for count in (2, 3, 1)]
    run_all(some, tmp_path, places=Places())
    assert asked == [3]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("seed = 0", "seed = 1"),
        lambda text: text.replace("lr = 0.01", "lr = 0.11"),
        lambda text: None,
        lambda text: text,
    ],
)
def test_the_settings_of_a_finished_run_are_written_again_if_they_are_damaged(
    damage: Callable[[str], str | None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = tiny("train.steps=2")
    train(config, tmp_path)
    path = run_folder(tmp_path, config) / "config.toml"
    text = path.read_text()
    damaged = damage(text)
    path.write_text(damaged) if damaged is not None else path.unlink()
    [ended] = run_all([config], tmp_path, places=Places(jobs=1))
    assert ended.how == "done"
    assert path.read_text() == text
    assert ("config.toml is damaged, and written again" in caplog.text) == (damaged != text)
