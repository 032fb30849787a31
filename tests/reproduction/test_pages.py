"""Pages are made from stored results; the command shows them."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from attractor.cli.commands import app
from attractor.errors import InputError
from attractor.reproduction import TARGETS
from attractor.reproduction.pages import PART, refreshed, write_pages
from attractor.reproduction.summary import SUMMARY, computed, counted, decided, waiting
from attractor.reproduction.tables import all_claims
from attractor.results.table import markdown

DOCS = Path(__file__).parents[2] / "docs"


def test_the_pages_are_those_that_the_stored_results_give() -> None:
    claims = all_claims()
    seen = 0
    for path in (DOCS / "reproduction.md", *sorted((DOCS / "reproduction").glob("*.md"))):
        text = path.read_text(encoding="utf-8")
        seen += len(PART.findall(text))
        assert refreshed(text, claims) == text, f"try `attractor reproduce pages`: {path.name}"
    assert seen >= 4


def test_only_marked_parts_change(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    part = "<!-- generated: 002/table-2 -->\nold\n<!-- end of generated part -->"
    text = f"By hand.\n{part}\nAfter |x|.\n"
    page.write_text(text)
    (tmp_path / "b.md").write_text("untouched")
    assert write_pages(tmp_path) == [page]
    new = page.read_text()
    assert new.startswith("By hand.\n")
    assert new.endswith("\nAfter |x|.\n")
    assert "| MNIST, LSTM 32 units | test accuracy, mean | 95.1 ± 0.2 % |" in new
    assert "old" not in new
    assert write_pages(tmp_path) == []
    with pytest.raises(InputError, match="expected a folder of pages"):
        write_pages(tmp_path / "none")


def test_the_first_page_counts_every_claim_once() -> None:
    claims = all_claims()
    every = sum(len(one.claims) for one in TARGETS.values())
    head, _, *rows, total = counted(claims).splitlines()
    assert head.startswith("| verdict | all | Kuo (2021) | Chandar (2020) |")
    assert total.startswith(f"| claims | {every} |")
    assert sum(int(row.split("|")[2]) for row in rows) == every
    assert "varies less" in decided(claims)
    assert "the Jacobian of a residual layer" in computed(claims)
    assert "the Jacobian of a residual layer" not in decided(claims)
    done = [one for found in claims.values() for one in found if one.n]
    parts = [part for name, part in SUMMARY.items() if name != "counts"]
    listed = sum(part(claims).count("\n| **") for part in parts)
    assert listed == len(done)
    left = sum(not one.n for found in claims.values() for one in found)
    assert waiting(claims).count("\n| ") - 1 == left
    assert markdown(["a"], [["x|y"]]) == "| a |\n| --- |\n| x\\|y |"


def test_the_command_lists_and_shows_what_is_stored() -> None:
    listed = CliRunner().invoke(app, ["reproduce", "list"])
    assert listed.exit_code == 0
    for key in TARGETS:
        assert key in listed.output
    shown = CliRunner().invoke(app, ["reproduce", "002/table-2", "--stored"])
    assert shown.exit_code == 0
    assert "95.1 ± 0.2 %" in shown.output
    assert "p (Holm)" in shown.output
    with pytest.raises(InputError, match="attractor figure chandar-4.7"):
        CliRunner().invoke(app, ["reproduce", "figure-4.7"], catch_exceptions=False)
