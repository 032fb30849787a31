"""A run folder from a stranger: what it names of a module is not imported unless it is trusted."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from typer.testing import CliRunner

from attractor.cli.commands import app
from attractor.errors import InputError
from attractor.experiments.files import EXPERIMENTS, with_bases
from attractor.experiments.repeat import read_run, verify
from attractor.experiments.restore import restored
from attractor.experiments.table import load
from attractor.experiments.train import run_folder, runs_of, train
from attractor.report.analysis import analysis
from attractor.report.inside import looked_into
from attractor.runs.read import load_runs
from attractor.tables import code_in
from experiments.helpers import tiny, tiny_optimiser, tiny_stream

MODULE = """
from pathlib import Path
from attractor.cells import GRUCell
Path({marker!r}).touch()

class Cell(GRUCell):
    pass
"""
REFUSED = "expected a run made of attractor's own parts in .*, but its {} is '{}', code that would"


class Stranger:
    """A run whose cell is of a module that leaves a mark where it is imported."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.marker, self.module = folder / "imported", f"strange_{folder.name}"
        text = MODULE.format(marker=str(self.marker))
        (folder / f"{self.module}.py").write_text(text)
        monkeypatch.syspath_prepend(str(folder))
        self.cell = f"{self.module}:Cell"
        config = tiny(f"model.cell={self.cell}", "train.steps=2")
        train(config, folder / "runs")
        self.folder = run_folder(folder / "runs", config)
        self.forget()

    def forget(self) -> None:
        """As if the module had never been seen here."""
        sys.modules.pop(self.module)
        self.marker.unlink()

    @property
    def imported(self) -> bool:
        return self.marker.exists()


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stranger:
    return Stranger(tmp_path, monkeypatch)


def seen(folder: Path, *, trust: bool = False) -> list[str]:
    """What a report that looks inside could not say."""
    found = looked_into(load_runs([folder]), trust=trust)
    return [one.note for part in found.values() for one in part]


@pytest.mark.parametrize("rebuild", [restored, verify, analysis])
def test_what_makes_a_run_again_imports_nothing_of_it(
    stranger: Stranger, rebuild: Callable[..., Any]
) -> None:
    with pytest.raises(InputError, match=REFUSED.format("model.cell", stranger.cell)):
        rebuild(stranger.folder)
    assert not stranger.imported
    rebuild(stranger.folder, trust=True)
    assert stranger.imported


def test_a_report_says_why_it_does_not_look_into_a_run(stranger: Stranger) -> None:
    (note,) = seen(stranger.folder)
    assert note.endswith("try --trust on the command line, or trust=True in Python.")
    assert not stranger.imported
    assert seen(stranger.folder, trust=True) == [""]
    assert stranger.imported


@pytest.mark.parametrize("command", ["verify", "analyse"])
def test_the_commands_refuse_it(command: str, stranger: Stranger, tmp_path: Path) -> None:
    options = ["--out", str(tmp_path / "page.html")] if command == "analyse" else []
    call = [command, str(stranger.folder), *options]
    found = CliRunner().invoke(app, call)
    assert "code that would be imported and called" in str(found.exception)
    assert not stranger.imported
    assert not (tmp_path / "page.html").exists()
    trusted = CliRunner().invoke(app, [*call, "--trust"])
    assert trusted.exit_code == 0, trusted.exception
    assert stranger.imported


def test_the_report_command_refuses_it(stranger: Stranger, tmp_path: Path) -> None:
    call = ["report", str(stranger.folder), "--out", str(tmp_path / "page.html")]
    found = CliRunner().invoke(app, [*call, "--inside"])
    assert found.exit_code == 0
    assert f"GRU (model.cell={stranger.cell}), seed 0: expected a run made of" in found.stderr
    assert "code that would be imported" in (tmp_path / "page.html").read_text()
    assert not stranger.imported
    trusted = CliRunner().invoke(app, [*call, "--inside", "--trust"])
    assert (trusted.exit_code, trusted.stderr) == (0, "")
    assert stranger.imported


def test_what_reads_numbers_alone_never_imports(stranger: Stranger, tmp_path: Path) -> None:
    page, out = str(tmp_path / "page.html"), str(tmp_path / "tracking")
    for call in (
        ["report", str(stranger.folder), "--out", page],
        ["track", str(stranger.folder), "--to", "csv", "--out", out],
    ):
        assert CliRunner().invoke(app, call).exit_code == 0
    assert not stranger.imported


def test_a_run_of_attractors_own_that_is_resumed_reads_no_names_from_its_folder(
    stranger: Stranger, tmp_path: Path
) -> None:
    config = tiny("train.steps=2")
    folder = run_folder(tmp_path / "mine", config)
    shutil.copytree(stranger.folder, folder)
    for name in ("done.json", "checkpoint.safetensors"):
        (folder / name).unlink()
    train(config, tmp_path / "mine")
    assert (folder / "config.toml").read_text() == config.to_toml()
    assert not stranger.imported


def test_a_file_that_is_named_to_be_run_is_the_users_own(
    stranger: Stranger, tmp_path: Path
) -> None:
    file, out = str(stranger.folder / "config.toml"), str(tmp_path / "again")
    found = CliRunner().invoke(app, ["run", file, "--out", out, "-q", "-j", "1"])
    assert found.exit_code == 0, found.exception
    assert stranger.imported


CONFIGS = {
    "recurrent": tiny().model_dump(exclude_none=True),
    "rule": tiny_optimiser("MTL2L, PES").model_dump(exclude_none=True),
    "stream": tiny_stream(label="both").model_dump(exclude_none=True),
}


@pytest.mark.parametrize(
    ("which", "path"),
    [
        ("recurrent", "kind"),
        ("recurrent", "task.name"),
        ("recurrent", "model.name"),
        ("recurrent", "model.cell"),
        ("recurrent", "model.compose.of"),
        ("recurrent", "optimiser.name"),
        ("rule", "optimiser.cell"),
        ("rule", "meta.tasks.name"),
        ("rule", "meta.model.cell"),
        ("rule", "meta.random.model.cell"),
        ("stream", "stream.name"),
        ("stream", "features.model.name"),
        ("stream", "strategy.name"),
        ("stream", "strategy.also.name"),
        ("stream", "train.callbacks"),
        ("stream", "train.trigger.name"),
    ],
)
def test_wherever_it_stands(which: str, path: str, tmp_path: Path) -> None:
    *parents, last = path.split(".")
    strange: Any = "os:system" if last != "callbacks" else ["per_class", "os:system"]
    content: Any = {last: strange}
    for parent in reversed(parents):
        content = {parent: [content] if parent == "tasks" else content}
    file = tmp_path / "config.toml"
    file.write_text(tomli_w.dumps({**CONFIGS[which], **content}))
    with pytest.raises(InputError, match=REFUSED.format(path, "os:system")):
        read_run(file)


def test_words_that_are_shown_may_have_any_form(tmp_path: Path) -> None:
    config = tiny().model_copy(update={"title": "a:b", "description": "c:d", "label": "e:f"})
    (tmp_path / "config.toml").write_text(config.to_toml())
    assert read_run(tmp_path / "config.toml") == config


def test_what_experiments_of_attractors_name_needs_no_trust(tmp_path: Path) -> None:
    """A few name parts of attractor that are in no table."""
    file, seen = tmp_path / "config.toml", set()
    for name in EXPERIMENTS:
        if any("attractor." in one for _, one in code_in(with_bases(EXPERIMENTS[name]))):
            config = runs_of(*load(name, ["seeds=[0]"]))[0]
            file.write_text(config.to_toml())
            assert read_run(file) == config
            seen |= {one for _, one in code_in(config.model_dump())}
    assert "attractor.models:Point" in seen
    file.write_text(config.to_toml().replace("attractor.m", "attractor.m.m"))
    with pytest.raises(InputError, match="code that would be imported"):
        read_run(file)
