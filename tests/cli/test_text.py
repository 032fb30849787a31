"""Labels and messages on the terminal: as they are, and without power over it."""

import logging
from pathlib import Path

import pytest
import typer.main

from attractor.cli.commands import app
from attractor.cli.progress import Watch
from attractor.cli.tables import results_table, table
from attractor.cli.text import Formatter, visible, warn
from attractor.errors import InputError
from attractor.files import check_target
from attractor.results import summary
from attractor.runs.jobs import Ended
from attractor.runs.read import load_runs
from experiments.helpers import TINY, called, tiny
from results.test_results import ended, save


@pytest.mark.parametrize("text", ["\x1b[2J", "\x07", "\x9b31m", "\r", "\u202e", "\u2028", "\x7f"])
def test_control_characters_are_written_out(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert text[0] not in visible(f"a{text}b")
    table(["x"], [[f"a{text}b"]])
    warn(f"a{text}b")
    shown = capsys.readouterr()
    assert text[0] not in shown.out + shown.err
    record = logging.LogRecord("x", logging.WARNING, "", 0, "a%sb", (text,), None)
    assert text[0] not in Formatter("%(message)s").format(record)


def test_other_characters_stay() -> None:
    assert visible("naïve, β = 0.1 – 日本 🎉") == "naïve, β = 0.1 – 日本 🎉"


def test_a_label_is_no_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed, label in enumerate(("LSTM [big]", "GRU [/b]", "[red]RNN")):
        save(tmp_path, label, seed, done=ended(0.5))
    results_table(summary(load_runs([tmp_path])))
    shown = capsys.readouterr().out
    assert all(label in shown for label in ("LSTM [big]", "GRU [/b]", "[red]RNN"))


def test_nor_in_bars_and_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tiny().model_copy(update={"label": "GRU [/b] [big]\x1b[2J"})
    with Watch([config], tmp_path, quiet=False) as watch:
        row = {"step": 3, "loss": 0.5}
        watch._draw({config.id: row})
        watch.console.print(watch.progress.get_renderable())
        watch.end(Ended(config, "done"))
    shown = capsys.readouterr().err
    assert "[1/1] GRU [/b] [big]\\x1b[2J, seed 0: done" in shown
    assert "\x1b[2J" not in shown


def test_no_help_has_brackets_that_markup_would_eat() -> None:
    def commands(one: object) -> list[object]:
        inner = getattr(one, "commands", {}).values()
        return [one, *(leaf for child in inner for leaf in commands(child))]

    for command in commands(typer.main.get_command(app)):
        for part in command.params:  # type: ignore[attr-defined]
            assert "[" not in (getattr(part, "help", "") or ""), (command, part)


@pytest.mark.parametrize("group", [[], ["bench"], ["meta"], ["data"]])
def test_no_summary_of_a_command_is_cut_off(group: list[str]) -> None:
    told = called(*group, "--help").stdout.partition("\nCommands:\n")[2]
    assert told
    assert "..." not in told


def test_help_tells_the_defaults() -> None:
    told = " ".join(called("run", "--help").stdout.replace("│", " ").split())
    assert "Data root; by default $ATTRACTOR_DATA, else the platform's cache folder." in told
    assert "Runs at a time; by default all cores." in told


def test_advice_keeps_its_brackets(capsys: pytest.CaptureFixture[str]) -> None:
    table(["what to do"], [['pip install "attractor[docs]"']])
    assert 'pip install "attractor[docs]"' in capsys.readouterr().out


@pytest.mark.parametrize("place", ["folder", "file/page.html", "file/deep/page.html"])
def test_a_report_that_cannot_be_written_is_refused_before_training(
    place: str, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="for --report, but"):
        check_target(tmp_path / place, "--report")
    check_target(tmp_path / "new" / "deep" / "page.html", "--report")
    check_target(tmp_path / "file", "--report")
    check_target(Path("page.html"), "--report")


def test_by_the_command_too(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    page = tmp_path / "file" / "page.html"
    done = called("run", TINY, "--out", tmp_path / "runs", "--report", page)
    assert done.returncode == 2
    assert f"expected to be able to write {page} for --report" in done.stderr
    assert not (tmp_path / "runs").exists()
