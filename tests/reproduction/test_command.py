"""The command runs what is missing, compares, and keeps a table and a page."""

import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from attractor.cli.commands import app
from attractor.experiments.table import load
from attractor.reproduction import TARGETS, work
from attractor.reproduction.outcomes import read
from attractor.reproduction.published import Number
from attractor.reproduction.targets import Claim, Source, Target

KEY = "000/table-9.9"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target of two tiny networks, and three updates of each."""
    source = Source(
        "demo", "demo", (0, 1), {"Ours": "RNN", "Theirs": "GRU"}, columns={"ACC": "accuracy"}
    )
    claim = Claim("GRU is better", "demo", "GRU", "RNN", "accuracy", quick="demo")
    target = Target(KEY, "table", "two networks", sources=(source,), claims=(claim,))
    numbers = (
        Number(KEY, "Table 9.9", "Ours", "ACC", 12.0, "%", "higher", "1"),
        Number(KEY, "Table 9.9", "Theirs (quoted)", "ACC", 13.0, "%", "higher", "2"),
    )
    monkeypatch.setitem(TARGETS, KEY, target)
    module = sys.modules[Number.__module__]  # the package has a function of its name
    monkeypatch.setattr(module, "numbers", lambda: numbers)

    def loaded(name: str, changes: Any = ()) -> Any:

        return load(name, [*changes, "train.steps=3"])

    monkeypatch.setattr(work, "load", loaded)


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_it_runs_compares_and_keeps(tmp_path: Path) -> None:
    call = ["reproduce", "table-9.9", "--out", str(tmp_path), "-q", "-j", "1"]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    folders = sorted((tmp_path / "demo").iterdir())
    assert len(folders) == 4
    assert "12 %" in done.output
    assert "quick" in done.output
    kept = read(tmp_path / "reproduction" / "000-table-9.9.csv.gz")
    assert set(kept.final("demo", "RNN", "accuracy")) == {0, 1}
    page = (tmp_path / "reproduction" / "000-table-9.9.md").read_text()
    assert page.startswith("# 000/table-9.9: two networks\n")
    assert "`attractor reproduce 000/table-9.9 --budget quick`" in page
    assert "| Ours | ACC | 12 % |" in page
    ends = [(one / "done.json").stat().st_mtime_ns for one in folders]
    assert CliRunner().invoke(app, [*call, "--seeds", "0"]).exit_code == 0
    page = (tmp_path / "reproduction" / "000-table-9.9.md").read_text()
    assert "`attractor reproduce 000/table-9.9 --budget quick --seeds 0`" in page
    assert [(one / "done.json").stat().st_mtime_ns for one in folders] == ends
    found = work.finished("demo", tmp_path)
    assert [row[:-1] for row in found.rows] == [row[:-1] for row in kept.rows]
    (folders[0] / "done.json").unlink()
    fewer = work.finished("demo", tmp_path)
    assert {row.run for row in kept.rows} - {row.run for row in fewer.rows} == {folders[0].name}
    folders[1].rename(folders[1].with_name("of-another-configuration"))
    assert len({row.run for row in work.finished("demo", tmp_path).rows}) == 2
