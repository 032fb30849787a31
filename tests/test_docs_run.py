"""Commands of the documentation are run: as they stand there, or shorter; or it is said why not."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attractor.cli.commands import app
from test_docs_commands import LINES, PAGES, in_blocks

GIVEN = {line.partition("#")[0].strip() for line in LINES.values()}
SHOWN = {line.partition("#")[0].strip() for page in PAGES for line in in_blocks(page)}
"""Those that stand in blocks, to be copied."""

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

FEW = "--only GRU --set train.steps=5 --seed 0"
ONCE = "--set train.steps=5 --set seeds=[0]"
WALKS: dict[str, dict[str, str]] = {
    "stored": {
        "doctor": "",
        "reproduce list": "",
        "figure kuo-6.3 --out tasks.svg": "",
        "figure chandar-4.1 --out copy.svg": "",
    },
    "inside": {
        "run demo --only GRU --seed 0 --set train.steps=200": "",
        "analyse runs/demo/gru-0-* --out inside.html": "",
    },
    "runs": {
        "run demo --set optimiser=anytime": FEW,
        "run demo --report runs/demo.html": FEW,
        "run demo --set train.steps=200 --report report.html": FEW,
        "run demo --track tensorboard --track csv": FEW,
        "report runs -o report.html": "",
        "report runs/demo -o report.html": "",
    },
    "sweeps": {
        "sweep demo --grid optimiser.lr=0.001,0.01": FEW,
        "sweep demo --grid cell=gru,janet,nru --seeds 0-2 --report cells.html": ONCE,
        "sweep demo --only LSTM --grid optimiser.lr=1e-4..1e-1:log --grid model.hidden_size=16..64"
        " --trials 20": "--set train.steps=50 --set seeds=[0] --trials 2",
    },
    "series": {
        "fit ECG5000_TRAIN.tsv --cell nru --out model": "--epochs 2",
        "predict model ECG5000_TEST.tsv": "",
        "predict model new.tsv --labels none --json": "",
        "compare ECG5000_TRAIN.tsv --seconds 10": "--seconds 0.3 --folds 2 --cell gru --cell rnn",
    },
    "rules": {
        "meta train rules --only LSTM --out lstm.safetensors": (
            "--set task.name=digits --set meta.learners=1 --set meta.steps=20"
        ),
        "meta test lstm.safetensors adam:lr=0.003 --task digits": "--steps 5 --seeds 1",
        "meta test lstm.safetensors adam:lr=0.01 sgd:lr=0.1,momentum=0.9 --task digits "
        "--hidden 32": "--steps 5 --seeds 1",
    },
}
"""What a reader gives one after the other, and what makes each of them shorter."""

WALKED = {line for walk in WALKS.values() for line in walk}

ELSEWHERE = {
    r"bench( .*)?": "minutes to hours; in small in tests/bench",
    r"report .*\bbench[-.\w]*(/\S*)?": "of what these leave; in tests/report",
    r"reproduce (table-6.1 .*|copy-quick --join|pages)": "minutes to hours; in tests/reproduction",
    r"run (ptb-char|lifelong)-.*": "minutes; each is read in tests/experiments",
    r"run mine.toml .*": "a file of the reader's own; those of the pages in test_docs_blocks.py",
    r"figure kuo-4.5 .*": "it trains two networks, for minutes",
    r"sweep .* --engine (ray|slurm)\b.*": "a cluster; in tests/runs",
    r"report runs --watch": "it serves until it is stopped; in tests/report",
    r"data fetch mnist": "the network; in tests/tasks/data",
}
"""Commands that are not run here, and why."""

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


def test_every_command_to_be_copied_is_run_or_says_why_not() -> None:
    run = {FIRST, *FAST, *SLOW, *WALKED}
    left = {line for line in SHOWN - run if not any(re.fullmatch(why, line) for why in ELSEWHERE)}
    assert left == set()
    assert run <= GIVEN
    for why in ELSEWHERE:
        assert any(re.fullmatch(why, line) for line in SHOWN), why


def written(path: Path, first: int, labels: bool = True) -> None:
    """Twenty short series of two classes, as in the UCR archive."""
    lines = [
        "\t".join(
            [*([str(1 + n % 2)] if labels else []), *(f"{(n % 2) * t / 9:.3f}" for t in range(9))]
        )
        for n in range(first, first + 20)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("walk", WALKS)
def test_commands_run_one_after_the_other(walk: str, tmp_path: Path) -> None:
    written(tmp_path / "ECG5000_TRAIN.tsv", 0)
    written(tmp_path / "ECG5000_TEST.tsv", 20)
    written(tmp_path / "new.tsv", 40, labels=False)
    for line, shorter in WALKS[walk].items():
        shell(f"{line} {shorter}", tmp_path)
