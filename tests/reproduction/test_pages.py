"""Pages are made from stored results; the command shows them."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attractor.cli.commands import app
from attractor.errors import InputError
from attractor.experiments import train
from attractor.experiments.config import RunConfig
from attractor.reproduction import TARGETS
from attractor.reproduction.headlines import headlined
from attractor.reproduction.numbered import numbered
from attractor.reproduction.outcomes import END, EXACT, Outcomes, Row
from attractor.reproduction.pages import PART, part, refreshed, target_page, write_pages
from attractor.reproduction.published import numbers, of_target
from attractor.reproduction.stock import kept
from attractor.reproduction.summary import (
    SUMMARY,
    computed,
    contradicted,
    controls,
    counted,
    decided,
    waiting,
)
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
    own = sum(claim.control for one in TARGETS.values() for claim in one.claims)
    papers, _, apart = counted(claims).split("\n\n")
    head, _, *rows, total = papers.splitlines()
    assert head.startswith("| verdict | all | Kuo (2021) | Chandar (2020) |")
    assert total.startswith(f"| claims | {every - own} |")
    assert sum(int(row.split("|")[2]) for row in rows) == every - own
    assert apart.splitlines()[-1].startswith(f"| controls | {own} |")
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


def test_controls_of_ours_are_no_claims_of_a_document() -> None:
    claims = all_claims()
    says = "the gain of MetaSGD-CL over ER is not one of the rate: higher ACC than ER at a rate of"
    assert says not in contradicted(claims)
    assert says in controls(claims)
    assert "beside replay at a rate of 0.1 (-0.9 points, a control of ours)" in headlined(claims)
    assert "at a rate of 0.1 (a control of ours) |" in part(
        TARGETS["000/table-6.1"], kept(TARGETS["000/table-6.1"]), claims
    )


def test_what_is_exact_is_told_apart_from_what_is_tested() -> None:
    found = {one.claim.says: one for each in all_claims().values() for one in each}
    exact = [one for one in found.values() if one.claim.experiment == EXACT]
    assert {one.told for one in exact} == {"holds, exact", "contradicted, exact"}
    assert not any(", exact" in one.told for one in found.values() if one.p is not None)


def test_every_published_number_is_counted_once() -> None:
    *rows, total = numbered().splitlines()[2:]
    assert sum(int(row.split("|")[2]) for row in rows) == len(numbers())
    assert total.startswith(f"| numbers | {len(numbers())} |")
    assert "| **quoted**: taken by the document from other papers | 33 |" in numbered()


def test_every_published_number_is_on_a_page() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in DOCS.glob("reproduction/*.md"))
    assert [key for key in TARGETS if of_target(key) and f"generated: {key} -->" not in text] == []


def test_claims_of_others_are_shown_and_count_where_they_belong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own, other = "003/section-5", "000/table-4.3"
    says = TARGETS[other].claims[0].says
    claims = all_claims()
    page = part(TARGETS[own], kept(TARGETS[own]), claims)
    assert f"The claims of `{other}`, which count there:" in page
    assert says in page
    assert "Nothing is stored" not in page
    shown = CliRunner().invoke(app, ["reproduce", own, "--stored"])
    assert f"the claims of {other}, which count there:" in shown.output
    assert says in shown.output
    assert claims[own] == []
    monkeypatch.setitem(TARGETS, own, replace(TARGETS[own], claims_of=()))
    assert all_claims() == claims  # no p and no count depends on where claims are shown
    assert "Nothing is stored" in part(TARGETS[own], kept(TARGETS[own]), claims)


def test_new_runs_decide_the_claims_of_others_that_are_shown() -> None:
    own, other = TARGETS["003/section-5"], TARGETS["000/table-4.3"]
    rows = [
        Row("ptb-word", "full", label, seed, "r", END, 9, "perplexity", value + seed * step)
        for label, value, step in (("IHC-LSTM", 70.0, 1.0), ("LSTM", 90.0, 1.1))
        for seed in range(5)
    ]
    found = all_claims(own, Outcomes(rows))
    assert [one.n for one in found[other.key]] == [5, 0, 0, 0, 0, 0, 0]
    assert found[other.key][0].verdict == "holds"
    stored = all_claims()
    assert found["000/section-3.3.6"][0].n == stored["000/section-3.3.6"][0].n


@pytest.mark.parametrize("width", [80, 100])
def test_a_terminal_never_cuts_the_key_that_is_typed(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    listed = CliRunner().invoke(app, ["reproduce", "list"]).output
    lines = re.sub(r"\x1b\[[\d;]*m", "", listed).splitlines()
    assert max(map(len, lines)) <= width
    assert {line.split()[0] for line in lines if re.match(r"\d{3}/", line)} == {*TARGETS}
    assert "…" not in listed


def test_json_is_refused_where_there_is_none() -> None:
    with pytest.raises(InputError, match="expected --json with `list`, but got it with table-6.1"):
        CliRunner().invoke(app, ["reproduce", "table-6.1", "--json"], catch_exceptions=False)


def test_a_page_has_the_command_that_made_it() -> None:
    one = TARGETS["000/table-6.1"]
    page = target_page(one, kept(one), all_claims(), "--budget quick")
    assert "`attractor reproduce 000/table-6.1 --budget quick`" in page
    assert "--budget full" not in page


def test_the_command_lists_and_shows_what_is_stored() -> None:
    listed = CliRunner().invoke(app, ["reproduce", "list"])
    assert listed.exit_code == 0
    for key in TARGETS:
        assert key in listed.output
    shown = CliRunner().invoke(app, ["reproduce", "002/table-2", "--stored"])
    assert shown.exit_code == 0
    assert "95.1 ± 0.2 %" in shown.output
    assert "p (Holm)" in shown.output
    with pytest.raises(InputError, match="000/figure-1.3 cannot: a drawing"):
        CliRunner().invoke(app, ["reproduce", "figure-1.3"], catch_exceptions=False)


def test_a_target_that_others_have_runs_for_is_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []

    def remember(found: list[RunConfig], *_: object, **__: object) -> list[object]:
        asked.extend(one.experiment for one in found)
        return []

    monkeypatch.setattr(train, "run_all", remember)
    call = ["reproduce", "002/figure-3", "--out", str(tmp_path), "--seeds", "0"]
    assert CliRunner().invoke(app, call).exit_code == 0
    assert {*asked} == {"psmnist-decaynet-quick"}
