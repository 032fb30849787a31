"""Two processes of torchrun come to what one comes to: the same batches, each with its share."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.main import get_group
from typer.testing import CliRunner

from attractor.cli.commands import app
from attractor.errors import InputError
from attractor.experiments.table import load
from attractor.experiments.train import run_folder, runs_of, train
from attractor.team import agreed, alike, gathered, joined, share, summed, unmoved
from attractor.training.process import Stopped

HERE = Path(__file__).parent
TEXT = "the quick brown fox jumps over the lazy dog, and the dog does not mind.\n"
BETWEEN = 1e-4
"""Relative: sums over a batch are taken in another order, in single precision, and steps add up."""


def data(root: Path) -> Path:
    """A text of our own below a data root."""
    folder = root / "tiny"
    folder.mkdir(parents=True)
    for half, times in {"train": 6, "valid": 2, "test": 1}.items():
        (folder / f"{half}.txt").write_text(TEXT * times)
    return root


def together(
    name: str, label: str, out: Path, root: Path, *more: str
) -> "subprocess.CompletedProcess[str]":
    """A run by two processes."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    asked = ["run", str(HERE / name), "--only", label, "--out", str(out), "--data", str(root), "-q"]
    return subprocess.run(
        [*command, "--standalone", "-m", "attractor", *asked, *more],
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "label"),
    [("language.toml", "LSTM"), ("meta.toml", "LSTM"), ("meta.toml", "DMSGD, PES")],
)
def test_two_processes_come_to_what_one_does(name: str, label: str, tmp_path: Path) -> None:
    root = data(tmp_path / "data")
    (config,) = runs_of(*load(str(HERE / name), []), [label])
    train(config, tmp_path / "one", data=root)
    # begun by one process and stopped in the middle, taken up by two
    left = iter([False] * 9 + [True])
    with pytest.raises(Stopped):
        train(config, tmp_path / "resumed", data=root, stop=lambda: next(left))
    wanted = rows(run_folder(tmp_path / "one", config))
    assert len(wanted) > 8
    for out in ("two", "resumed"):
        done = together(name, label, tmp_path / out, root)
        assert done.returncode == 0, done.stderr[-3000:]
        found = rows(run_folder(tmp_path / out, config))
        for mine, theirs in zip(found, wanted, strict=True):
            assert mine.pop("split") == theirs["split"]
            numbers = {name: value for name, value in theirs.items() if name != "split"}
            assert mine == pytest.approx(numbers, rel=BETWEEN)


@pytest.mark.slow
def test_what_cannot_be_shared_is_refused(tmp_path: Path) -> None:
    root = data(tmp_path / "data")
    done = together("language.toml", "LSTM", tmp_path / "out", root, "--seeds", "0-1")
    assert "expected one run for the 2 processes of torchrun to share, but got 2" in done.stderr
    assert done.returncode != 0
    done = together("language.toml", "LSTM", tmp_path, root, "--set", "train.batch_size=1")
    assert "expected a batch of at least a sample for each of the 2 processes" in done.stderr
    done = together("language.toml", "TARDIS", tmp_path, root)
    assert "expected a model that keeps nothing of the samples that it sees" in done.stderr


def test_alone(tmp_path: Path) -> None:
    """Without torchrun the same functions do nothing."""

    x = torch.arange(3.0)
    summed([x])
    with joined() as (rank, size):
        assert (rank, size) == (0, 1)
    assert x.tolist() == [0, 1, 2]
    assert gathered(x, 3) is x
    assert alike([x])
    assert (agreed(True, False), share(7)) == ((True, False), slice(0, 7))
    with pytest.raises(InputError, match="draw no random numbers"), unmoved():
        torch.rand(1)


@pytest.fixture
def torchrun(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """As if torchrun had started so many processes, of which this is one."""

    def start(count: int) -> None:
        monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
        monkeypatch.setenv("WORLD_SIZE", str(count))

    return start


@pytest.mark.parametrize("command", sorted({*get_group(app).commands} - {"run"}))
def test_what_processes_would_do_twice_is_refused(
    command: str, torchrun: Callable[[int], None]
) -> None:
    torchrun(2)
    found = CliRunner().invoke(app, [command])
    told = f"expected `attractor {command}` to be started once, but torchrun started 2 of it"
    assert str(found.exception).startswith(told)


def test_what_they_share_and_what_one_does_alone_is_not(torchrun: Callable[[int], None]) -> None:
    torchrun(2)
    assert CliRunner().invoke(app, ["run", "demo", "--dry-run"]).exit_code == 0
    torchrun(1)
    assert CliRunner().invoke(app, ["list", "tasks"]).exit_code == 0
