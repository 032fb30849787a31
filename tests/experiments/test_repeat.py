"""One run again, from the file in its folder, and held against what it came to."""

import html
import json
import re
import tomllib
from pathlib import Path

import pytest

from attractor.errors import InputError
from attractor.experiments.config import RunConfig
from attractor.experiments.repeat import compared, read_run, verify
from attractor.experiments.train import run_all, run_folder, train
from attractor.report import build
from attractor.runs.engines import Places
from attractor.runs.folder import damage, repeat
from attractor.runs.read import load_runs
from attractor.runs.repeatable import repeatable
from experiments.helpers import TINY, called, numbers, tiny, tiny_optimiser, tiny_stream

SHORT = ("train.steps=4", "train.eval_every=2")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    config = tiny(*SHORT)
    train(config, tmp_path / "runs")
    return run_folder(tmp_path / "runs", config)


@pytest.mark.parametrize(
    "config",
    [
        tiny(*SHORT, "train.stop_below=100", "model.compose={ zoneout = [0.0, 0.1] }"),
        tiny_optimiser("Adam, tuned"),
        tiny_optimiser("MTL2L, PES", "meta.model.name=mlp", "meta.model.hidden=[3]"),
        tiny_stream(label="both"),
    ],
    ids=lambda config: config.id,
)
def test_the_file_of_a_run_is_that_run(config: RunConfig, tmp_path: Path) -> None:
    (tmp_path / "anything.toml").write_text(config.to_toml())
    again = read_run(tmp_path / "anything.toml")
    assert again == config
    assert again.id == config.id


def test_the_file_of_an_experiment_is_no_run() -> None:
    assert read_run(TINY) is None


def test_changes_make_another_run(folder: Path) -> None:
    path = folder / "config.toml"
    assert read_run(path, ["optimiser.lr=0.5"]) != read_run(path)
    text = path.read_text().replace('budget = "quick"', 'budget = "full"')
    path.write_text(text)
    assert read_run(path, ["optimiser.lr=0.5"]).budget == "full"  # type: ignore[union-attr]
    assert read_run(path, ["train.steps=3"]).budget == "changed"  # type: ignore[union-attr]
    with pytest.raises(InputError, match="Did you mean 'train.steps'"):
        read_run(path, ["train.stepz=3"])


def test_saving_more_often_is_the_same_run() -> None:
    assert tiny("train.checkpoint_every=1").id == tiny("train.checkpoint_every=50").id
    assert tiny("train.eval_every=1").id != tiny("train.eval_every=50").id


def test_a_run_that_is_repeated_is_the_same(folder: Path) -> None:
    found = verify(folder)
    assert found.same, found.difference
    assert found.lines == 4 + 2 + 1
    assert found.elsewhere == []


def test_which_line_differs_is_told(folder: Path) -> None:
    log = folder / "metrics.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    changed = re.sub(r'("loss": \d\.\d+)(\d)', lambda m: m[1] + str((int(m[2]) + 1) % 10), lines[3])
    assert changed != lines[3]
    log.write_text("".join([*lines[:3], changed, *lines[4:]]))
    found = verify(folder)
    assert not found.same
    assert found.difference.startswith(f"line 4 of metrics.jsonl is {changed.strip()}, but the")


def test_which_number_differs_is_told(folder: Path) -> None:
    done = json.loads((folder / "done.json").read_text())
    done["test"]["accuracy"] += 0.25
    (folder / "done.json").write_text(json.dumps(done))
    assert verify(folder).difference.startswith("test.accuracy in done.json is")


def test_a_line_too_many_is_told(folder: Path, tmp_path: Path) -> None:
    train(tiny(*SHORT), tmp_path / "again")
    other = run_folder(tmp_path / "again", tiny(*SHORT))
    with open(other / "metrics.jsonl", "a") as file:
        file.write('{"step": 5}\n')
    assert compared(folder, other).difference.startswith("line 8 of metrics.jsonl is missing, but")


def test_another_torch_is_told(folder: Path) -> None:
    path = folder / "environment.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"torch": "1.0"}))
    found = verify(folder)
    assert found.same
    assert [one.partition(" and ")[0] for one in found.elsewhere] == ["torch 1.0"]


def test_what_is_no_finished_run_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a finished run at .* but got no run"):
        verify(tmp_path)
    (folder / "done.json").unlink()
    with pytest.raises(InputError, match="but got a run that is not done"):
        verify(folder)


def test_a_run_can_be_repeated_from_what_is_mailed(folder: Path, tmp_path: Path) -> None:
    (run,) = load_runs([folder])
    text = repeatable(run)
    assert tomllib.loads(text) == tomllib.loads((folder / "config.toml").read_text())
    assert f"# torch: {run.environment['torch']}" in text
    assert f"# data: {run.environment['data']}" in text
    (tmp_path / "mailed.toml").write_text(text)
    config = read_run(tmp_path / "mailed.toml")
    assert config is not None
    train(config, tmp_path / "there")
    assert numbers(run_folder(tmp_path / "there", config)) == numbers(folder)


def test_doing_again_what_was_stopped_goes_on(tmp_path: Path) -> None:
    """``--force`` and Ctrl-C, and the same command once more."""
    configs = [tiny(*SHORT), tiny(*SHORT, label="LSTM")]
    run_all(configs, tmp_path, places=Places(jobs=1))
    first = run_folder(tmp_path, configs[0]) / "done.json"
    before = first.stat().st_mtime_ns
    run_all(configs, tmp_path, places=Places(jobs=1), force=True)
    assert first.stat().st_mtime_ns != before
    again = first.stat().st_mtime_ns
    folders = [run_folder(tmp_path, config) for config in configs]
    repeat(folders)  # as if it had been stopped between the two
    (folders[0] / "again").unlink()
    (folders[1] / "done.json").unlink()
    run_all(configs, tmp_path, places=Places(jobs=1), force=True)
    assert first.stat().st_mtime_ns == again
    assert not (run_folder(tmp_path, configs[1]) / "again").exists()


def test_the_command_verifies_and_repeats(folder: Path, tmp_path: Path) -> None:
    done = called("verify", folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{folder}: the same, bit for bit (7 lines)\n"
    again = called("run", folder / "config.toml", "--out", tmp_path / "new", "-q")
    assert again.returncode == 0, again.stderr
    new = tmp_path / "new" / "tiny" / folder.name
    assert numbers(new) == numbers(folder)
    (new / "done.json").write_text(
        (new / "done.json").read_text().replace('"steps": 4', '"steps": 5')
    )
    differs = called("verify", new)
    assert differs.returncode == 1
    assert "different: steps in done.json is 5, but the repeated run came to 4" in differs.stdout
    wrong = called("run", folder / "config.toml", "--only", "LSTM")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "known variant of this run (GRU), but got 'LSTM'" in wrong.stderr


def test_a_run_of_a_quick_experiment_cannot_be_repeated_as_a_full_one(tmp_path: Path) -> None:
    train(tiny(), tmp_path)
    path = run_folder(tmp_path, tiny()) / "config.toml"
    with pytest.raises(InputError, match=r"the budget of the file \(quick\) or a smaller one"):
        read_run(path, ["budget=full"])


def test_a_page_that_is_mailed_repeats_its_runs(tmp_path: Path) -> None:
    train(tiny(), tmp_path)
    page = build(load_runs([tmp_path]))
    (text,) = re.findall(r"<pre[^>]*>(# `attractor run FILE.toml`.*?)</pre>", page, re.DOTALL)
    file = tmp_path / "mailed.toml"
    file.write_text(html.unescape(text))
    again = read_run(file)
    assert again is not None
    assert again.id == tiny().id
    assert again == tiny()


def test_a_missing_log_is_said_in_a_sentence(tmp_path: Path) -> None:
    train(tiny(), tmp_path)
    folder = run_folder(tmp_path, tiny())
    (folder / "metrics.jsonl").unlink()
    with pytest.raises(InputError, match="the log of a finished run at .* No such file"):
        verify(folder)


def test_deep_nonsense_in_the_end_of_a_run_is_damage(tmp_path: Path) -> None:
    train(tiny(), tmp_path)
    folder = run_folder(tmp_path, tiny())
    (folder / "done.json").write_text("[" * 100_000)
    assert damage(folder) == "done.json cannot be read"


def test_verify_shows_no_escapes(tmp_path: Path) -> None:
    train(tiny(), tmp_path)
    folder = run_folder(tmp_path, tiny())
    log = folder / "metrics.jsonl"
    log.write_bytes(b"\x1b[31mRED" + log.read_bytes())
    done = called("verify", folder)
    assert done.returncode == 1
    assert "\x1b" not in done.stdout + done.stderr
    assert r"\x1b[31mRED" in done.stdout
