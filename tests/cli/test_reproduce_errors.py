"""What `attractor reproduce` cannot do, it says in a sentence, before anything is run."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from attractor.cli.commands import app
from attractor.errors import InputError

CASES = [
    (["table-6.1", "--budget", "medium"], r"expected a budget of quick or full, but got 'medium'"),
    (["table-6.1", "--seeds", ""], r"expected seeds such as 3, 0-9 or 0,2,5, but got ''"),
    (["table-6.1", "--seeds", ","], r"expected seeds such as 3, 0-9 or 0,2,5, but got ','"),
    (["table-6.1", "--seeds", "many"], r"expected seeds .* but got 'many'"),
    (["table-6.1", "--stored", "--seeds", "3"], r"--seeds .* but --stored runs nothing"),
    (["list", "--seeds", "3"], r"--seeds .* but list runs nothing"),
    (["pages", "--seeds", "3"], r"--seeds .* but pages runs nothing"),
    (["table-2.1", "--computed", "--seeds", "3"], r"--seeds .* but --computed runs nothing"),
    (["copy-quick", "--join", "--seeds", "3"], r"--seeds .* but --join runs nothing"),
    (["copy-quack", "--join"], r"known target or experiment, .* Did you mean 'copy-quick'"),
    (["copy-quick", "--join"], r"expected finished runs of copy-quick in .*, but there are none"),
    (["table-2.1", "--join"], r"expected a target with runs to join, but 000/table-2.1 has none"),
    (["table-4.1", "--join"], r"'table-4.1' is in several"),
    (["tabel-6.1"], r"known target, but got 'tabel-6.1'. Did you mean 'table-6.1'"),
]


@pytest.mark.parametrize(("words", "said"), CASES)
def test_a_mistake_is_told(words: list[str], said: str, tmp_path: Path) -> None:
    call = ["reproduce", *words, "--out", str(tmp_path / "runs"), "--keep", str(tmp_path / "kept")]
    with pytest.raises(InputError, match=said):
        CliRunner().invoke(app, call, catch_exceptions=False)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "--stored"], r"no --stored with list"),
        (["list", "--budget", "full"], r"no --budget with list"),
        (["pages", "--out", "runs"], r"no --out with pages"),
        (["table-6.1", "--stored", "--join"], r"no --join with --stored"),
        (["table-6.1", "--stored", "-j", "2"], r"no --jobs with --stored"),
        (["copy-quick", "--join", "--budget", "full"], r"no --budget with --join"),
        (["table-2.1", "--computed", "--budget", "full"], r"no --budget with --computed"),
        (["table-6.1", "--pages", "docs"], r"no --pages with a target"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(InputError, match=f"expected {said}, but got it"):
        CliRunner().invoke(app, ["reproduce", *words], catch_exceptions=False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["report", "runs", "--watch", "--inside"], r"no --inside with --watch"),
        (["report", "runs", "--watch", "--out", "a.html"], r"no --out with --watch"),
        (["report", "runs", "--port", "8000"], r"no --port with a page without --inside"),
        (["report", "runs", "--inside", "--port", "8000"], r"no --port with a page"),
        (["report", "runs", "--trust"], r"no --trust with a page without --inside"),
        (["report", "runs", "--data", "data"], r"no --data with a page without --inside"),
        (["report", "runs", "--watch", "--trust"], r"no --trust with --watch"),
        (["analyse", "runs/a", "--steps", "3"], r"no --steps with a run"),
        (["analyse", "cobweb", "--map", "x", "--trust"], r"no --trust with cobweb"),
        (["analyse", "bifurcation", "--map", "x", "--steps", "3"], r"no --steps with bifurcation"),
        (["run", "demo", "--dry-run", "--json"], r"no --json with --dry-run"),
        (["run", "demo", "--dry-run", "--report", "a.html"], r"no --report with --dry-run"),
        (["run", "demo", "--dry-run", "--force"], r"no --force with --dry-run"),
    ],
)
def test_so_it_is_of_reports_and_dry_runs(words: list[str], said: str) -> None:
    with pytest.raises(InputError, match=f"expected {said}, but got it"):
        CliRunner().invoke(app, words, catch_exceptions=False)
