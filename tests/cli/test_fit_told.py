"""What `attractor fit`, `compare` and `predict` say of labels, of commands, and of the folder."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from attractor.cli.commands import app
from attractor.cli.fit import ended_by_hand
from attractor.errors import InputError
from attractor.estimators import load
from cli.test_series import SMALL, run, ts, tsv

FEW = ["--cell", "rnn", "--cell", "gru", "--folds", "2", "--seconds", "0.1", "--parameters", "60"]


def test_nobodys_files_are_overwritten_or_deleted_unless_asked(tmp_path: Path) -> None:
    file, out = tsv(tmp_path / "some.tsv"), tmp_path / "model"
    out.mkdir()
    (out / "report.html").write_text("mine")
    (out / "weights-mine.safetensors").write_text("mine")
    with pytest.raises(InputError, match=r"without a report\.html, but there is one in .*--force"):
        run("fit", file, "--out", out, *SMALL)
    assert (out / "report.html").read_text() == "mine"
    run("fit", file, "--out", out, "--epochs", "1", "-q", "--force")
    run("fit", file, "--out", out, "--epochs", "1", "-q", "--force", "--seed", "1")
    assert (out / "weights-mine.safetensors").read_text() == "mine"
    assert len(list(out.glob("weights-*"))) == 2


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("", r"the name of a folder for --out, but got none\. Try --out model"),
        ("m" * 300, "able to write m+.*, but got: File name too long"),
    ],
)
def test_a_folder_that_cannot_be_made_is_told_before_training(
    out: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(*_: object, **__: object) -> None:
        raise AssertionError("training began")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("attractor.estimators.RecurrentClassifier.fit", fit)
    with pytest.raises(InputError, match=said):
        run("fit", tsv(tmp_path / "some.tsv"), "--out", out)
    with pytest.raises(AssertionError, match="training began"):
        run("fit", tmp_path / "some.tsv", "--out", "deep/model")
    assert [one.name for one in tmp_path.iterdir()] == ["some.tsv"]


def numbers(path: Path, labels: Any) -> Path:
    """Series whose last value is their label, with noise."""
    rng = np.random.default_rng(3)
    rows = ((label, *rng.normal(size=3), float(label) + rng.normal() / 9) for label in labels)
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    return path


def test_it_is_said_what_labels_are_taken_for_and_why(tmp_path: Path) -> None:
    from attractor.estimators.reading import Answers, kind_told, read

    real = numbers(tmp_path / "real.tsv", np.linspace(0.11, 2.3, 30))
    words, target = tsv(tmp_path / "words.tsv"), ts(tmp_path / "some.ts")
    counted = tsv(tmp_path / "counted.tsv", names=("1", "2.0"))
    mixed = tsv(tmp_path / "mixed.tsv", names=("1", "none"))
    cases: tuple[tuple[Path, Answers, str], ...] = (
        (real, "auto", "numbers that are not all whole: a regression, from 0.11 to 2.3 (--answers "
         "classes for classes)"),
        (words, "auto", "words: 2 classes"),
        (mixed, "auto", "words: 2 classes"),
        (counted, "auto", "whole numbers: 2 classes (--answers numbers for a regression)"),
        (target, "auto", "numbers, as the file says: a regression, from -20 to 20 (--answers "
         "classes for classes)"),
        (counted, "numbers", "numbers, as --answers says: a regression, from 1 to 2"),
        (real, "classes", "classes, as --answers says: 30 classes"),
    )  # fmt: skip
    for file, answers, said in cases:
        assert kind_told(read(file, answers=answers), answers) == f"labels are {said}"
    done = run("fit", real, "--out", tmp_path / "model", *SMALL)
    assert "attractor: labels are numbers that are not all whole: a regression" in done.stderr
    assert "attractor: 30 series of 4 steps\n" in done.stderr
    told = run("compare", words, *FEW, "-q").stderr
    assert told.startswith(
        "attractor: 40 series of 5 steps\nattractor: labels are words: 2 classes"
    )


def test_the_error_of_a_regression_is_told_in_the_unit_of_its_labels(tmp_path: Path) -> None:
    file, out = numbers(tmp_path / "some.tsv", 1000 * np.linspace(0.11, 2.3, 30)), tmp_path / "m"
    done = run("fit", file, "--out", out, *SMALL)
    shown = done.stderr.split("root mean squared error on the 6 series that were held back: ")[1]
    error = shown.split("\n")[0]
    assert (
        f"The root mean squared error on the series that were held back is {error}"
        in (out / "report.html").read_text()
    )
    found = json.loads(run("fit", file, "--out", out, *SMALL, "--force", "--json").stdout)
    assert found["valid"]["root_mean_squared_error"] == pytest.approx(
        float(error.replace(",", "")), rel=1e-3
    )
    model = load(out)
    assert found["valid"]["loss"] == pytest.approx(model.valid_["loss"])
    assert found["valid"]["root_mean_squared_error"] > 10 * model.valid_["loss"]


def test_commands_that_are_printed_take_labels_for_the_same(tmp_path: Path) -> None:
    file, out = tsv(tmp_path / "my file.tsv", names=("1", "2")), tmp_path / "model"
    asked = ["--answers", "numbers"]
    done = run("compare", file, *FEW, *asked, "-q")
    command = done.stdout.strip().split("\n")[-1]
    assert command.startswith(f"attractor fit '{file}' --cell ")
    assert command.endswith(" --answers numbers")
    assert "--answers" not in run("compare", file, *FEW, "-q").stdout
    run("fit", file, "--out", out, "--epochs", "1", "-q", *asked)
    assert "--seed 0 --answers numbers</code>" in (out / "report.html").read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--seed", "-1"], r"expected --seed to be at least 0, but got -1\. Try --seed 0\.$"),
        (["--parameters", str(10**12)], r"--parameters to be at most .* Try --parameters 10000\.$"),
        (["--cell", "lsmt"], "Did you mean 'lstm'"),
        (["--cell", "gru"], "at least two different cells"),
    ],
)
def test_arguments_are_checked_before_it_is_said_how_long_it_takes(
    options: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []
    monkeypatch.setattr("attractor.cli.text.warn", told.append)
    with pytest.raises(InputError, match=said):
        run("compare", tsv(tmp_path / "some.tsv"), *options)
    assert told == []


def test_advice_is_of_the_command_that_is_used(tmp_path: Path) -> None:
    whole = numbers(tmp_path / "whole.tsv", range(40))
    out = tmp_path / "model"
    with pytest.raises(InputError, match="Try `--answers numbers` if they are numbers, or --valid"):
        run("fit", whole, "--out", out)
    with pytest.raises(InputError, match="Try `--answers numbers` if they are numbers"):
        run("compare", whole, *FEW)
    for option, said in (("hidden_size=1", "Try --hidden-size"), ("cell=gru", "Try --cell")):
        with pytest.raises(InputError, match=rf"among them\. {said}\.$"):
            run("fit", whole, "--out", out, "--option", option, "--answers", "numbers")
    run("fit", whole, "--out", out, "--answers", "numbers", "--epochs", "1", "-q")
    with pytest.raises(InputError, match=r"could not convert .* Try --labels ignore\.$"):
        run("predict", out, tsv(tmp_path / "words.tsv"))


@pytest.fixture
def keyboard() -> Iterator[None]:
    """Ctrl-C as Python has it, also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("keyboard")
def test_ctrl_c_ends_training_early_and_keeps_the_best_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(*_: Any, **__: Any) -> Any:
        def show(epoch: int, total: int, row: Any) -> None:
            if epoch == 2:
                signal.raise_signal(signal.SIGINT)

        return nullcontext(show)

    monkeypatch.setattr("attractor.cli.progress.counted", shown)
    out = tmp_path / "model"
    done = CliRunner().invoke(app, ["fit", str(tsv(tmp_path / "some.tsv")), "--out", str(out)])
    assert done.exit_code == 130
    assert "Ctrl-C ended training in epoch 3; this is the best network until then" in done.stderr
    assert done.stdout.split() == [str(out), str(out / "report.html")]
    assert len([row for row in load(out).history_ if row["split"] == "train"]) == 2
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("keyboard")
def test_ctrl_c_leaves_at_once_where_there_is_nothing_to_keep_and_when_it_comes_again() -> None:
    def pressed(times: int, ready: bool) -> bool:
        with ended_by_hand(lambda: ready) as stop:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
            return stop()

    assert pressed(1, ready=True)
    assert not pressed(0, ready=True)
    for times, ready in ((1, False), (2, True)):
        with pytest.raises(KeyboardInterrupt):
            pressed(times, ready)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # in the background of a shell
    assert not pressed(1, ready=True)


def test_ctrl_c_inside_a_finalizer_is_not_lost() -> None:
    code = """if True:
        import signal, time, weakref
        signal.signal(signal.SIGINT, signal.default_int_handler)
        class One: pass
        from attractor.cli import commands, main
        def command():
            one = One()
            weakref.finalize(one, lambda: signal.raise_signal(signal.SIGINT))
            del one
            for _ in range(500):
                time.sleep(0.02)
        commands.main = command
        main()"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, text=True)
    assert (done.returncode, done.stderr) == (130, "")
