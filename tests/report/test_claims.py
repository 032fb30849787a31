"""The claims of the documents on a page, which says of them what `attractor reproduce` says."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from attractor.report import build
from attractor.report.chapter import chapter
from attractor.report.claims import Told, claims_on, counted
from attractor.report.comparing import findings, standing
from attractor.report.tables import result_table
from attractor.reproduction import TARGETS
from attractor.reproduction.claims import Finding, paired
from attractor.reproduction.outcomes import of_runs
from attractor.reproduction.tables import all_claims
from attractor.reproduction.targets import Claim
from attractor.runs.read import Run, load_runs
from report.conftest import as_today

SCORES = {
    "MetaSGD-CL": [0.824, 0.828, 0.820],
    "GEM": [0.8135, 0.816, 0.8067],  # behind in each seed, though not beyond doubt
    "ER": [0.69552, 0.6994, 0.69148],  # so far behind that no correction undoes it
    "Mine": [0.8105, 0.813, 0.8037],  # no claim is about it
}
WORDS = "MetaSGD-CL has a higher ACC than GEM"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, write_run: Any) -> list[Run]:
    root = tmp_path_factory.mktemp("claims")
    for label, scores in SCORES.items():
        for seed, score in enumerate(scores):
            config = {"experiment": "permuted-mnist", "budget": "full"}
            folder = write_run(root, label, seed, config=config, steps=200)
            path = (folder if label == "Mine" else as_today(folder)) / "done.json"
            done = json.loads(path.read_text())
            path.write_text(json.dumps(done | {"test": {"accuracy": score}}))
    return load_runs([root])


def test_p_and_verdict_are_those_of_reproduce(runs: list[Run]) -> None:
    target = TARGETS["000/table-6.1"]
    ours = of_runs(runs, {(run.experiment, run.label) for run in runs})
    expected = {one.claim.says: one for one in all_claims(target, ours)[target.key] if one.n}
    told = claims_on(runs)["permuted-mnist"]
    found = {one.finding.claim.says: one.finding for one in told if one.target == target}
    assert found == expected
    assert found[WORDS].told == "not shown"
    assert found["MetaSGD-CL has a higher ACC than ER"].told == "holds"


def test_the_table_of_results_contradicts_no_claim(runs: list[Run]) -> None:
    told = claims_on(runs)["permuted-mnist"]
    stand = standing(runs, told)
    assert standing(runs).told("GEM") == "behind"  # over the variants of the chapter alone
    said = {label: stand.told(label) for label in stand.others}
    assert said == {"GEM": "not shown", "ER": "behind", "Mine": "not shown"}
    assert standing(runs).told("Mine") == "behind"  # where no claim is, its own correction stands
    rows = {row.label: row.cells for row in result_table(runs, told).rows}
    assert not rows["MetaSGD-CL"][1].best


def test_the_summary_counts_the_verdicts_of_claims(runs: list[Run]) -> None:
    told = claims_on(runs)["permuted-mnist"]
    verdicts = [one.finding.told for one in told]
    holds, level = (verdicts.count(one) for one in ("holds", "not shown"))
    assert (holds, level) == (1, len(verdicts) - 1)
    said = "Of 2 published claims, one holds and the other is not shown."
    assert findings(runs, told)[-1] == said


def told_as(*verdicts: str) -> list[Told]:
    """Claims of a target with verdicts, of which short runs lean one way or none."""
    target = TARGETS["000/table-6.1"]
    claim = Claim("", "demo", "A", "B", "accuracy")
    leans = {"agree": 1.0, "open": 0.1, "against": -1.0}
    found = [
        Finding(claim, 3, leans[one], 0.5, verdict="quick")
        if one in leans
        else Finding(claim, 3, 1.0, 0.5, verdict=one)
        for one in verdicts
    ]
    return [Told(target, "demo", one) for one in found]


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        (["holds"], "Of one published claim, one holds."),
        (
            ["agree", "open"],
            "Of 2 published claims, short runs agree with one and cannot tell on the other.",
        ),
        (
            ["contradicted", "contradicted", "against", "few seeds"],
            "Of 4 published claims, 2 are contradicted, one has too few seeds and short runs point "
            "the other way on one.",
        ),
    ],
)
def test_verdicts_are_told_in_sentences(verdicts: list[str], said: str) -> None:
    assert counted(told_as(*verdicts)) == [said]


def test_a_bound_stands_beside_ours_in_the_same_unit() -> None:
    target = TARGETS["000/table-6.1"]
    claim = Claim("", "demo", "A", "", "accuracy", bound=0.5)
    one = Told(target, "demo", Finding(claim, 5, 0.0845, 0.037, 1.0, 5, corrected=0.01))
    assert one.cells[2][0] == "58.5 ± 3.7, bound 50"
    few = paired(Claim("", "demo", "A", "B", "accuracy"), {0: 0.5, 1: 0.4}, {0: 0.4, 1: 0.6})
    assert Told(target, "demo", few).cells[3][0] == "1 of 2"


def test_the_page_shows_claims_and_says_over_what_p_is_corrected(runs: list[Run]) -> None:
    html = build(runs)
    section = html.split('id="chapter-1-claims"')[1].split("</section>")[0]
    row = next(line for line in section.splitlines() if WORDS in line)
    cells = re.findall(r"<td[^>]*>(.*?)</td>", row)
    assert cells[1].startswith("+1.19 ± 0.35 points")
    assert cells[-1] == "not shown"
    assert "corrected by Holm over all claims of the documents" in section
    results = html.split('id="chapter-1-results"')[1].split("</section>")[0]
    assert "over the 3 comparisons with the best and all claims of the documents" in results


def test_runs_that_no_document_speaks_of_have_no_claims(runs_root: Path) -> None:
    runs = load_runs([runs_root])
    assert claims_on(runs) == {}
    made = chapter(runs)
    assert "claims" not in dict(made.sections)
    assert "all claims of the documents" not in build(runs)


def test_runs_of_another_length_or_of_two_settings_decide_no_claim(
    tmp_path: Path, write_run: Any
) -> None:
    for seed in range(3):
        config = {"experiment": "permuted-mnist", "budget": "changed"}
        as_today(write_run(tmp_path / "a", "GEM", seed, config=config))
        for rate in (0.01, 0.02):
            full = {"experiment": "permuted-mnist", "budget": "full"}
            folder = write_run(tmp_path / f"b{rate}", "GEM", seed, config=full)
            as_today(folder, optimiser={"lr": rate})
    assert claims_on(load_runs([tmp_path])) == {}


def test_a_changed_budget_decides_no_claim_whatever_else_is_as_today(runs: list[Run]) -> None:
    def told(budget: str) -> int:
        own = [replace(run, config={**run.config, "budget": budget}) for run in runs]
        return len(claims_on(own).get("permuted-mnist", []))

    assert told("full") > 0
    assert told("changed") == 0
