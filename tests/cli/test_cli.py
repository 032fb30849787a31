"""The command line, as a user calls it: in real processes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from filelock import FileLock

from attractor.experiments.train import run_folder, train
from attractor.runs import checkpoint
from experiments.helpers import TINY, TINY_OPTIMISERS, TINY_STREAM, attractor, called, numbers, tiny

ONE = ("run", TINY, "--only", "GRU", "--seed", "0")


def test_version() -> None:
    done = called("--version")
    assert done.returncode == 0
    assert re.fullmatch(r"attractor \d+\.\d+\.\d+\n", done.stdout)


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["run"],
        ["list"],
        ["report"],
        ["track"],
        ["reproduce"],
        ["fit"],
        ["predict"],
        ["compare"],
        ["verify"],
        ["data"],
        ["data", "fetch"],
        ["doctor"],
        ["bench"],
        ["bench", "optimisers"],
        ["meta"],
        ["meta", "train"],
        ["meta", "test"],
        ["meta", "card"],
    ],
)
def test_help_has_an_example(command: list[str]) -> None:
    done = called(*command, "--help")
    assert done.returncode == 0
    assert "attractor" in done.stdout
    assert "Example: attractor" in done.stdout


def test_help_does_not_import_torch() -> None:
    code = (
        "import sys; sys.argv = ['attractor', '--help']\n"
        "from attractor.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'numpy', 'scipy', 'plotly', 'pydantic', 'joblib'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "heavy: []" in done.stdout


def test_nothing_is_compiled_before_it_is_asked_for() -> None:
    code = "import sys, attractor.estimators; print('torch._dynamo' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"  # it takes as long to import as the rest of torch


def test_help_answers_at_once() -> None:
    """In seconds of the processor, best of several: other work on the machine does not count."""
    times = []
    for _ in range(7):
        before = os.times()
        command = [sys.executable, "-m", "attractor.cli", "--help"]
        subprocess.run(command, capture_output=True, check=True)
        after = os.times()
        user = after.children_user - before.children_user
        times.append(user + after.children_system - before.children_system)
    assert min(times) < 0.3


def test_list_in_words_and_json() -> None:
    words = called("list", "cells")
    assert words.returncode == 0
    assert re.search(r"lstm\s+LSTM\s+1997\s+131,584\s+h:128 c:128", words.stdout)
    rules = called("list", "optimisers").stdout
    assert re.search(r"meta_sgd\s+MetaSGD\s+2017\s+25,450\s+one size", rules)
    assert re.search(r"lstm\s+LSTMOptimiser\s+2016\s+5,141\s+any network", rules)
    found = json.loads(called("list", "--json").stdout)
    kinds = {"cells", "optimisers", "strategies", "streams", "tasks", "models", "experiments"}
    assert set(found) == kinds
    er = next(row for row in found["strategies"] if row["key"] == "er")
    assert er["year"] == 2019
    assert "balanced" in er["options"]
    assert "permuted_images" in [row["key"] for row in found["streams"]]
    assert "demo" in [row["key"] for row in found["experiments"]]


def test_doctor_says_what_is_missing_and_what_to_do() -> None:
    rows = json.loads(called("doctor", "--json").stdout)
    found = {row["what"]: row for row in rows}
    assert found["torch"]["found"].startswith("2.")
    assert {"python", "device", "threads", "data root", "data: mnist"} <= set(found)
    assert found["kernels"]["found"].startswith(("active (", "off ("))
    for row in rows:
        if row["found"] in ("missing", "none", "not installed"):
            assert row["advice"]


def test_doctor_says_which_files_are_missing_where_some_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from attractor.cli import doctor
    from attractor.tasks import data
    from attractor.tasks.data import DATASETS

    states = {"mnist": ["ok"] * 4, "kmnist": ["missing", "missing", "ok", "ok"]}

    def verify(name: str, root: Path) -> list[SimpleNamespace]:
        found = states.get(name, ["missing"] * 4)
        return [SimpleNamespace(state=s, part=f"part {n}") for n, s in enumerate(found)]

    monkeypatch.setattr(data, "verify", verify)
    rows = {what: (found, advice) for what, found, advice in doctor._data()}
    assert rows["data: mnist"] == ("ok", "")
    assert rows["data: kmnist"] == (
        "missing: part 0, part 1; ok: part 2, part 3",
        "attractor data fetch kmnist",
    )
    assert {rows[f"data: {name}"][0] for name in DATASETS if name not in states} == {"missing"}


def test_run_then_report(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = called("run", TINY, "--out", tmp_path / "runs", "--report", page, "-j", "2")
    assert done.returncode == 0, done.stderr
    assert "[4/4]" in done.stderr
    assert "\x1b" not in done.stderr + done.stdout
    assert f"report: {page}" in done.stdout
    assert page.read_text().startswith("<!doctype html>")
    again = called("report", tmp_path / "runs", "-o", tmp_path / "again.html", "--title", "Mine")
    assert again.stdout == f"{tmp_path / 'again.html'}\n"
    assert "Mine" in (tmp_path / "again.html").read_text()


def test_json_goes_to_stdout_alone(tmp_path: Path) -> None:
    done = called(*ONE, "--out", tmp_path, "--json", "--quiet")
    assert done.returncode == 0
    assert done.stderr == ""
    (row,) = json.loads(done.stdout)
    assert (row["label"], row["seed"], row["status"]) == ("GRU", 0, "done")
    assert 0 <= row["outcome"]["test"]["accuracy"] <= 1


def test_side_by_side_gives_the_same_numbers_as_one_by_one(tmp_path: Path) -> None:
    assert called("run", TINY, "--out", tmp_path / "two", "-j", "2", "-q").returncode == 0
    train(tiny(), tmp_path / "one")
    one, two = (numbers(run_folder(tmp_path / name, tiny())) for name in ("one", "two"))
    assert one == two


def test_dry_run_does_nothing(tmp_path: Path) -> None:
    done = called("run", TINY, "--out", tmp_path / "runs", "--dry-run")
    assert len(done.stdout.splitlines()) == 4
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("number", "jobs", "whom"),
    [  # each pair of two once; all of them with `make slow`
        (signal.SIGINT, "1", "parent"),
        (signal.SIGINT, "2", "group"),
        (signal.SIGTERM, "1", "group"),
        (signal.SIGTERM, "2", "parent"),
        pytest.param(signal.SIGINT, "1", "group", marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, "2", "parent", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, "1", "parent", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, "2", "group", marks=pytest.mark.slow),
    ],
)
def test_stopped_by_a_signal(number: signal.Signals, jobs: str, whom: str, tmp_path: Path) -> None:
    """Ctrl-C reaches the whole group, a job manager's signal only the parent: both save."""
    long = ("--set", "train.steps=100000", "--set", "train.checkpoint_every=100000")
    process = attractor("run", TINY, *long, "--out", tmp_path, "-j", jobs, "-q")
    started = int(jobs)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.rglob("metrics.jsonl"))) < started and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    (os.killpg if whom == "group" else os.kill)(process.pid, number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    assert "saved and go on with the same command" in err
    assert "Traceback" not in err
    folders = [path.parent for path in tmp_path.rglob("metrics.jsonl")]
    assert len(folders) >= started
    for folder in folders:
        assert next(checkpoint.candidates(folder))["process"]["step"] > 0


@pytest.mark.parametrize("moment", [1.0, 2.0, 3.0])
def test_stopped_while_workers_start(moment: float, tmp_path: Path) -> None:
    long = ("--set", "train.steps=100000", "--set", "train.checkpoint_every=100000")
    process = attractor("run", TINY, *long, "--out", tmp_path, "-j", "2", "-q")
    time.sleep(moment)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert out == ""


def test_stopped_inside_code_given_as_a_string() -> None:
    """There Python would end itself by the signal, although somebody caught the exception."""
    code = (
        "import sys, types; from attractor.cli import main\n"
        "commands = types.ModuleType('attractor.cli.commands')\n"
        "stop = 'import signal, time; signal.raise_signal(signal.SIGINT); time.sleep(5)'\n"
        "commands.main = lambda: exec(stop)\n"
        "sys.modules['attractor.cli.commands'] = commands\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, "")


def test_broken_and_future_files(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text("title = no quotes")
    (tmp_path / "future.toml").write_text("version = 99")
    for name, text in (("broken", "a syntax error"), ("future", "it is of version 99")):
        done = called("run", tmp_path / f"{name}.toml")
        assert done.returncode == 2
        assert text in done.stderr
        assert "Traceback" not in done.stderr


def test_data_list_and_verify(tmp_path: Path) -> None:
    listed = json.loads(called("data", "list", "--data", tmp_path, "--json").stdout)
    assert listed["root"] == str(tmp_path)
    assert {row["name"] for row in listed["datasets"]} >= {"mnist", "fashion_mnist", "kmnist"}
    verified = called("data", "verify", "mnist", "--data", tmp_path, "--json")
    assert verified.returncode == 1
    assert {row["state"] for row in json.loads(verified.stdout)} == {"missing"}


def test_a_second_process_says_that_the_run_is_running(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, tiny())
    folder.mkdir(parents=True)
    with FileLock(folder / ".lock"):
        done = called(*ONE, "--out", tmp_path, "-q")
        assert done.returncode == 1
        assert "is running in another process. Wait for it, or use --wait" in done.stderr
        waiting = attractor(*ONE, "--out", tmp_path, "-q", "--wait")
        time.sleep(4)
        assert waiting.poll() is None
    _, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 0, err
    assert (folder / "done.json").exists()


def test_a_run_that_diverges_exits_with_1(tmp_path: Path) -> None:
    wild = ("--set", "optimiser=sgd", "--set", "optimiser.lr=3e38")
    done = called(*ONE, *wild, "--out", tmp_path, "-q")
    assert done.returncode == 1
    assert re.search(r"the loss became \S+ at step \d+ of 60 \(gradient norm", done.stderr)
    assert "Traceback" not in done.stderr
    folder = next(tmp_path.rglob("failed.json")).parent
    assert called("report", folder, "-o", tmp_path / "page.html").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run", "dmeo"], "known experiment .* but got 'dmeo'. Did you mean 'demo'"),
        (["run", "nowhere.toml"], "a configuration file at nowhere.toml, but got: No such file"),
        ([*ONE, "--set", "model.cell=grru"], "known cell .* but got 'grru'. Did you mean 'gru'"),
        ([*ONE, "--set", "task.name=digit"], "known task .* Did you mean 'digits'"),
        ([*ONE, "--set", "model.hidden_size=-1"], "hidden_size to be .* but got -1"),
        ([*ONE, "--set", "train.stepz=1"], "known key .* Did you mean 'train.steps'"),
        ([*ONE, "--set", "train.device=cuda:9"], "a device that torch can use here"),
        ([*ONE, "--out", "/dev/null/x"], "expected to be able to write /dev/null/x"),
        (["run", TINY, "--only", "GRUU"], "known variant of this experiment"),
        ([*ONE, "--set", "task.name=mnist", "--set", "task.order=rows", "--data", "none"],
         "at none/MNIST/raw/.*attractor data fetch mnist"),
        (["report", "none"], "a folder with runs at none, but got nothing there"),
        (["data", "fetch", "mnits"], "known data set .* Did you mean 'mnist'"),
        (["data", "verify", "mnits"], "known data set"),
        (["list", "cels"], "cels"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_sentence_and_exit_code_2(
    arguments: list[str], text: str, tmp_path: Path
) -> None:
    done = called(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert re.search(text, " ".join(done.stderr.split())), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_damaged_data_file(tmp_path: Path) -> None:
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for part in ("train", "t10k"):
        (raw / f"{part}-images-idx3-ubyte.gz").write_bytes(b"not an image")
        (raw / f"{part}-labels-idx1-ubyte.gz").write_bytes(b"not a label")
    done = called(
        *ONE, "--set", "task.name=mnist", "--data", tmp_path, "--out", tmp_path / "runs", "-q"
    )
    assert done.returncode == 2
    assert "ubyte.gz" in done.stderr
    assert "truncated" in done.stderr
    assert called("data", "verify", "mnist", "--data", tmp_path).returncode == 1


def test_head_may_close_the_pipe() -> None:
    shell = f"{sys.executable} -m attractor.cli list --json | head -1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr


def test_meta_train_card_and_test(tmp_path: Path) -> None:
    config = TINY_OPTIMISERS
    out = tmp_path / "rule.safetensors"
    done = called("meta", "train", config, "--only", "LSTM", "--out", out)
    assert (done.returncode, done.stdout) == (0, f"{out}\n"), done.stderr
    card = json.loads(called("meta", "card", out, "--json").stdout)
    assert card["kind"] == "lstm"
    assert "mlp" in called("meta", "card", out).stdout
    assert "lstm/mlp" in called("meta", "card").stdout
    told = called("meta", "card", "pacer").stdout.splitlines()
    assert told[0] == "kind: pacer"
    assert max(map(len, told)) <= 100
    compared = called("meta", "test", out, "sgd:lr=0.1", "--steps", "5", "--seeds", "2", "-q")
    assert compared.returncode == 0
    assert "sgd:lr=0.1" in compared.stdout
    for wrong, text in ((TINY_STREAM, "is of kind continual"), (TINY, "is made by hand")):
        refused = called("meta", "train", wrong, "--out", out)
        assert refused.returncode == 2
        assert text in refused.stderr
