"""What is said to come out is shown by paired tests, and is no more than that."""

import json
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from attractor.report import build
from attractor.report.comparing import behind, findings, headline, standing
from attractor.report.tables import environment, result_table
from attractor.runs.read import load_runs
from report.conftest import as_today

SCORES = {
    "A": [0.90, 0.80, 0.70, 0.85],
    "B": [0.89, 0.79, 0.691, 0.841],  # always a little behind, though intervals overlap
    "C": [0.95, 0.70, 0.80, 0.70],  # anywhere
}


@pytest.fixture
def root(tmp_path: Path, write_run: Any) -> Path:
    for label, scores in SCORES.items():
        for seed, score in enumerate(scores):
            scored(write_run(tmp_path, label, seed, config={"budget": "full"}), score)
    return tmp_path


def scored(folder: Path, accuracy: float) -> None:
    done = json.loads((folder / "done.json").read_text())
    done["test"] = {"accuracy": accuracy}
    (folder / "done.json").write_text(json.dumps(done))


def test_pairs_tell_what_intervals_do_not(root: Path) -> None:
    stand = standing(load_runs([root]))
    assert stand.best == "A"
    assert (stand.told("B"), stand.told("C")) == ("behind", "not shown")
    p = stats.ttest_rel(SCORES["A"], SCORES["B"]).pvalue
    assert stand.others["B"].p == pytest.approx(p)
    assert stand.others["B"].corrected == pytest.approx(2 * p)
    assert not stand.proven
    text, size = behind(stand, "B")
    assert text == "0.950 ± 0.092, behind"
    assert size == pytest.approx(0.0095)


def test_findings_say_who_is_ahead_of_whom(root: Path) -> None:
    first, ahead, level = findings(load_runs([root]))
    assert first == "A has the best mean accuracy: 81 ± 14% over 4 seeds."
    assert ahead.startswith("Over shared seeds it is shown to be ahead of B (paired t tests")
    assert level == "It is not shown to be ahead of C."


def test_bold_is_proven(root: Path, write_run: Any) -> None:
    runs = load_runs([root])
    assert not any(cell.best for row in result_table(runs).rows for cell in row.cells)
    two = [run for run in runs if run.label != "C"]
    bold = {row.label: row.cells[1].best for row in result_table(two).rows}
    assert bold == {"A": True, "B": False}


def test_the_papers_number_has_a_column(tmp_path: Path, write_run: Any) -> None:
    for label in ("GEM", "ER", "Mine"):
        for seed in range(3):
            config = {"experiment": "permuted-mnist", "budget": "full"}
            folder = write_run(tmp_path, label, seed, config=config)
            scored(folder if label == "Mine" else as_today(folder), 0.69 + 0.002 * seed)
    runs = load_runs([tmp_path])
    made = result_table(runs)
    place = made.headings.index("Published")
    assert {row.label: row.cells[place].text for row in made.rows} == {
        "GEM": "79.43",
        "ER": "69.42",
        "Mine": "–",
    }
    assert findings(runs)[-1] == "Beside the published numbers: 1 agrees, 1 worse."


def test_runs_that_did_not_end_are_no_finding(tmp_path: Path, write_run: Any) -> None:
    write_run(tmp_path, status="unfinished")
    assert findings(load_runs([tmp_path])) == [
        "No run is done yet: there are no results to compare."
    ]


def test_start_times_are_a_range(tmp_path: Path, write_run: Any) -> None:
    for seed in range(6):
        path = write_run(tmp_path, seed=seed) / "environment.json"
        path.write_text(json.dumps({"started": f"2026-03-0{seed + 1}", "torch": "2.13.0"}))
    found = dict(environment(load_runs([tmp_path])))
    assert found["started"] == [("2026-03-01 to 2026-03-06, 6 values", 6)]
    assert found["torch"] == [("2.13.0", 6)]


def test_numbers_have_no_zeros_that_say_nothing(tmp_path: Path, write_run: Any) -> None:
    for seed in range(2):
        scored(write_run(tmp_path, "A", seed), 0.92)
    scored(write_run(tmp_path, "B", 0), 0.874)
    runs = load_runs([tmp_path])
    assert findings(runs)[0] == "A has the best mean accuracy: 92 ± 0% over 2 seeds."
    assert behind(standing(runs), "B")[0] == "4.6, few seeds"
    made = result_table(runs)
    texts = {row.label: [cell.text for cell in row.cells] for row in made.rows}
    assert texts["A"][1] == "92 ± 0"
    assert texts["A"][made.headings.index("Median")] == "92.0"  # as many decimals as 87.4
    assert texts["B"][1] == "87.4"
    assert made.scale == ("87.40", "92.00")  # both ends have as many digits
    assert "fewer than three shared seeds are not tested" in made.compared
    assert "leaves out zero may be “not shown”" in made.compared


def test_the_headline_is_the_main_finding(root: Path) -> None:
    runs = load_runs([root])
    assert headline(runs) == (
        "A has the best mean accuracy, 81 ± 14%, and is shown to be ahead of 1 of 2 others."
    )
    two = [run for run in runs if run.label != "C"]
    assert headline(two) == "A is shown to be ahead of B: mean accuracy 81 ± 14%."
    other = [run for run in runs if run.label != "B"]
    assert headline(other) == (
        "A has the best mean accuracy, 81 ± 14%, but is not shown to be ahead of C."
    )
    alone = [run for run in runs if run.label == "A"]
    assert headline(alone) == "A reaches an accuracy of 81 ± 14% (mean over 4 seeds)."


def test_the_page_states_its_finding_under_the_title(
    root: Path, tmp_path: Path, write_run: Any
) -> None:
    runs = load_runs([root])
    assert f'<p class="headline">{headline(runs)}</p>' in build(runs)
    for label in ("A", "B"):
        for seed in range(3):
            folder = write_run(tmp_path / "b", label, seed, config={"experiment": "other"})
            scored(folder, 0.5 + 0.1 * (label == "A") + 0.001 * seed * (label == "A"))
    both = build([*runs, *load_runs([tmp_path / "b"])])
    assert (
        '<p class="headline">In 1 of 2 experiments one variant is shown to be ahead of all others '
        "(A in other).</p>"
    ) in both


def test_nobody_is_best_where_several_are_level(tmp_path: Path, write_run: Any) -> None:
    def told(scores: dict[str, list[float]]) -> tuple[str, list[str]]:
        root = tmp_path / str(len(list(tmp_path.iterdir())))
        for label, each in scores.items():
            for seed, score in enumerate(each):
                scored(write_run(root, label, seed), score)
        runs = load_runs([root])
        return headline(runs), findings(runs)

    all_level = "All 3 variants have the same mean accuracy: 50%."
    assert told({"A": [0.5], "B": [0.5], "C": [0.5]}) == (all_level, [all_level])
    two = "A and B have the same mean accuracy: 50%."
    assert told({"A": [0.4, 0.5, 0.6], "B": [0.5, 0.5, 0.5]}) == (two, [two])
    some = "A and B have the same best mean accuracy: 50%."
    behind_both = {"A": [0.4, 0.5, 0.6], "B": [0.5, 0.5, 0.5], "C": [0.1, 0.2, 0.31]}
    found = told(behind_both | {"D": [0.1, 0.8, 0.2], "E": [0.2]})
    assert found[0] == found[1][0] == some
    assert found[1][1].startswith("Over shared seeds A is shown to be ahead of C (paired")
    assert found[1][2:] == [
        "A is not shown to be ahead of D.",
        "With E A shares fewer than three seeds: no test.",
    ]


def test_the_headline_says_that_there_are_too_few_seeds(tmp_path: Path, write_run: Any) -> None:
    for label, score in (("A", 0.5), ("B", 0.4)):
        scored(write_run(tmp_path, label), score)
    assert headline(load_runs([tmp_path])) == (
        "A has the best mean accuracy, 50%: too few shared seeds to tell whether that is luck."
    )


def test_why_there_are_no_results(tmp_path: Path, write_run: Any) -> None:
    write_run(tmp_path / "a", "A", status="failed")
    assert headline(load_runs([tmp_path / "a"])).startswith("The run failed: there are no")
    write_run(tmp_path / "a", "B", status="failed")
    assert headline(load_runs([tmp_path / "a"])).startswith("All 2 runs failed: ")
    write_run(tmp_path / "a", "C", status="unfinished")
    assert headline(load_runs([tmp_path / "a"])).startswith("No run is done yet: ")
    scored(write_run(tmp_path / "b", "D"), float("inf"))
    assert headline(load_runs([tmp_path / "b"])).startswith("No run that is done measured a number")


def test_nobody_is_behind_whom_shared_seeds_show_ahead(tmp_path: Path, write_run: Any) -> None:
    for label, scores in (("A", [0.50, 0.61, 0.70, 0.80, 0.99]), ("B", [0.52, 0.63, 0.72, 0.821])):
        for seed, score in enumerate(scores):
            scored(write_run(tmp_path, label, seed), score)
    stand = standing(load_runs([tmp_path]))
    assert stand.best == "A"  # by the seed that B does not have
    assert stand.others["B"].corrected is not None
    assert stand.others["B"].corrected < 0.05
    assert stand.told("B") == "not shown"
