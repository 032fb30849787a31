"""Commands of the documentation that finish in seconds are run, as they stand there."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attractor.cli.commands import app
from test_docs_commands import LINES

GIVEN = {line.partition("#")[0].strip() for line in LINES.values()}

SWEEP = "sweep demo --only GRU --grid model.hidden_size=16,32 --seeds 0-1 --set train.steps=20"

FAST = {
    "list": "cells",
    "list cells nru": "memory_size",
    "figure": "decaynet-2",
    "meta card lstm/mlp": "seed",
    "sweep demo --grid cell=lstm,nru --grid optimiser.lr=0.001,0.003 --seeds 0-9 --dry-run": "40",
    f"{SWEEP} --dry-run": "gru-model-hidden-size-32-1",
}
"""By command, a word of what it prints."""

SLOW = {
    "verify runs/demo/lstm-0-*": "same",
    "run runs/demo/lstm-0-*/config.toml --out elsewhere": "LSTM",
    "track runs --to tensorboard": "runs",
    "report runs --inside": "report.html",
    "sweep demo --grid model.hidden_size=16,32 --seeds 0-1 --set train.steps=20": "",
    SWEEP: "GRU (model.hidden_size=32)",
    "reproduce 002/table-2 --stored": "close",
    "reproduce 001/section-3.2.4": "contradicted",
    "reproduce 001/section-3.5": "verdict",
    'analyse cobweb --map "tanh(3*x)" --out cobweb.svg': "cobweb.svg",
    "figure decaynet-2 --out figure.svg": "figure.svg",
    'analyse bifurcation --map "r*x*(1-x)" --out bifurcation.png': "bifurcation.png",
}
"""The same, in a folder in which a command of the README has run."""

FIRST = "run demo --set train.steps=200 --only LSTM"


@pytest.mark.parametrize("line", FAST)
def test_a_command_answers(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert line in GIVEN
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, shlex.split(line))
    assert done.exit_code == 0, done.output
    assert FAST[line] in done.output


def shell(line: str, folder: Path) -> str:
    """What a command prints in a shell, which must not fail."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        f"attractor {line}",
        shell=True,
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a user who has followed the README so far."""
    assert FIRST in GIVEN
    made = tmp_path_factory.mktemp("user")
    assert "LSTM" in shell(FIRST, made)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("line", SLOW)
def test_a_command_runs_in_a_folder(line: str, folder: Path, tmp_path: Path) -> None:
    assert line in GIVEN
    copy = tmp_path / "user"
    shutil.copytree(folder, copy)
    assert SLOW[line] in shell(line, copy)
