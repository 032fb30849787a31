"""Which stored numbers a claim goes by: of which runs, which steps and which budget."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from attractor.errors import InputError
from attractor.reproduction.claims import Finding, examined
from attractor.reproduction.outcomes import END, Outcomes, Row, of_runs, read, write
from attractor.reproduction.tables import claim_row, claim_rows, number_rows
from attractor.reproduction.targets import Budget, Claim, target
from attractor.reproduction.verdicts import judged
from attractor.runs.folder import fail
from attractor.runs.read import load_runs
from report.conftest import write_run

BOTH: tuple[Budget, ...] = ("full", "quick")


def claim(test: str = "higher", **more: Any) -> Claim:
    return Claim("", "demo", "A", "B", "accuracy", test, **more)  # type: ignore[arg-type]


def row(label: str, seed: int, value: float, **more: Any) -> Row:
    own: dict[str, Any] = {"split": END, "step": 9, "measure": "accuracy", "budget": "full"} | more
    return Row(experiment="demo", label=label, seed=seed, run="r", value=value, **own)


def test_a_table_is_kept_as_it_was(tmp_path: Path) -> None:
    rows = [row('A, <b>\n"x"', 2, 1 / 3), row("A", 1, 2.5, split="train", step=3)]
    write(Outcomes(rows), tmp_path / "a.csv.gz")
    first = (tmp_path / "a.csv.gz").read_bytes()
    back = read(tmp_path / "a.csv.gz")
    assert [one.label for one in back.rows] == ["A", 'A, <b>\n"x"']
    assert back.rows[1].value == pytest.approx(1 / 3, abs=1e-7)
    write(back, tmp_path / "a.csv.gz")
    assert (tmp_path / "a.csv.gz").read_bytes() == first
    (tmp_path / "b.csv.gz").write_bytes(first[:40])
    with pytest.raises(InputError, match="expected a table of results"):
        read(tmp_path / "b.csv.gz")


def test_windows_may_differ_and_swings_are_changes_from_row_to_row() -> None:
    course = {5: 1.0, 10: 4.0, 15: 2.0, 20: 2.5, 25: 9.0}
    rows = [
        row(label, seed, scale * seed * value, split="train", step=step)
        for label, scale in (("A", 1.0), ("B", 10.0))
        for seed in (1, 2, 3)
        for step, value in reversed(course.items())
    ]
    found = Outcomes(rows)
    window = {"split": "train", "first": 20, "last": 25, "other_first": 5, "other_last": 15}
    same = Claim("", "demo", "A", "A", "accuracy", **window)  # type: ignore[arg-type]
    assert examined(same, found).difference == pytest.approx(2 * (5.75 - 7 / 3))
    swings = examined(replace(same, take="swing"), found)
    assert swings.difference == pytest.approx(2 * (6.5 - 2.5))
    both = examined(replace(same, other="B", other_first=None, other_last=None), found)
    assert both.difference == pytest.approx(2 * (5.75 - 57.5))


def test_without_a_window_the_last_fifth_of_the_longest_run_is_its_end() -> None:
    course = {10: 50.0, 70: 40.0, 79: 30.0, 80: 4.0, 90: 2.0, 100: 3.0}
    rows = [
        row(label, seed, offset + value, split="train", step=step)
        for label, offset in (("A", 0.0), ("B", 5.0))
        for seed in (1, 2, 3, 4, 5)
        for step, value in course.items()
        if (label, seed) != ("B", 4) or step <= 70  # a run that stopped has no end
    ]
    rows.append(row("A", 5, 1.0, measure="diverged"))  # nor has one that diverged at the end
    rows += [row("A", seed, 1e6) for seed in (1, 2, 3, 4)]  # of another split
    rows += [
        r._replace(experiment="longer", step=10 * r.step) for r in rows
    ]  # its end is elsewhere
    found = examined(claim("lower", split="train"), Outcomes(rows))
    assert (found.n, found.right, found.diverged) == (3, 3, 1)
    assert found.difference == pytest.approx(-5.0)
    alone = Claim("", "demo", "A", "", "accuracy", split="train", bound=1.0)
    assert examined(alone, Outcomes(rows)).difference == pytest.approx((4 + 2 + 3) / 3 - 1)


def test_windows_are_means_and_quick_runs_decide_nothing() -> None:
    rows = [
        row(label, seed, value + step, split="train", step=step, budget=budget)
        for budget, label, value in (("quick", "A", 0.0), ("quick", "B", 5.0))
        for seed in (1, 2, 3)
        for step in (10, 80, 90, 101)
    ]
    found = Outcomes(rows)
    assert found.window("demo", "B", "accuracy", "train", 80, 100) == {1: 90.0, 2: 90.0, 3: 90.0}
    asked = claim("lower", split="train", first=80, last=100, quick="demo")
    assert examined(asked, found, "quick").verdict == "quick"
    newer = found.joined(Outcomes([row("A", 1, 7.0)]))
    assert newer.window("demo", "A", "accuracy", "train", 0, 99) == {2: 60.0, 3: 60.0}
    assert newer.final("demo", "A", "accuracy") == {1: 7.0}


def test_only_ended_runs_of_the_wanted_variants_count(tmp_path: Path) -> None:
    ends = ("done", "failed", "unfinished")
    for label, seed, status in (
        *zip(["LSTM"] * 3, range(3), ends, strict=True),
        ("GRU", 0, "done"),
    ):
        write_run(tmp_path, label, seed, status=status)
    found = of_runs(load_runs([tmp_path]), [("copy-memory", "LSTM"), ("other", "GRU")])
    assert {(one.label, one.seed) for one in found.rows} == {("LSTM", 0), ("LSTM", 1)}
    assert found.final("copy-memory", "LSTM", "parameters") == {0: 68736.0}
    assert found.diverged("copy-memory", "LSTM") == {1}
    assert {one.step for one in found.rows if one.measure == "diverged"} == {500}
    assert found.budget("copy-memory") == "quick"
    mean = found.window("copy-memory", "LSTM", "loss", "train", 50, 50)[0]
    assert mean == pytest.approx(load_runs([tmp_path])[1].series("train", "loss")[50])


def test_a_run_that_an_error_ended_says_nothing_of_its_network(tmp_path: Path) -> None:
    asked = {"train": {"steps": 100, "stop_below": 0.1}}
    for seed in (0, 1):
        folder = write_run(tmp_path, "LSTM", seed, status="failed", steps=100, config=asked)
    fail(write_run(tmp_path, "LSTM", 2, status="gone", config=asked), "OSError: the disk is full")
    assert json.loads((folder / "failed.json").read_text())["step"] == 50
    found = of_runs(load_runs([tmp_path]), [("copy-memory", "LSTM")])
    assert found.diverged("copy-memory", "LSTM") == {0, 1}
    assert found.final("copy-memory", "LSTM", "steps_to_solve") == {0: 50.0, 1: 50.0}
    assert {one.seed for one in found.rows} == {0, 1}


def test_what_tables_print_after_plus_minus_is_the_spread_over_tasks() -> None:
    last, early = {1: 0.9, 2: 0.5, 3: 0.4}, {1: 0.2, 2: 0.2, 3: 0.2}
    rows = [
        Row("permuted-mnist-networks", "full", "HCN", 0, "a", "test", step, f"task_{task}", value)
        for step, found in ((100, early), (200, last))
        for task, value in found.items()
    ]
    rows += [
        Row("permuted-mnist-networks", "full", "HCN", seed, "a", END, 200, "accuracy", 0.6)
        for seed in range(3)
    ]
    outcomes = Outcomes(rows)
    by_hand = 1.96 * math.sqrt((0.3**2 + 0.1**2 + 0.2**2) / 2)
    assert outcomes.over_tasks("permuted-mnist-networks", "HCN") == pytest.approx({0: by_hand})
    found = judged(target("000/table-6.5"), outcomes)
    ours = {(one.number.row, one.number.column): one.over_tasks for one in found}
    assert ours["permuted MNIST, 20 tasks: HCN", "ACC"] == pytest.approx(100 * by_hand)
    assert ours["permuted MNIST, 20 tasks: MLP", "ACC"] is None
    first = number_rows(target("000/table-6.5"), outcomes, "full")[0]
    assert first[3] == "60.00 (51.9 over tasks)"


def test_a_run_that_solved_nothing_counts_as_the_longest_of_both() -> None:
    """However long each was tried: where neither solved its task there is no difference."""
    ended = {"A": [(900, 1), (4000, 0), (700, 0)], "B": [(1000, 0), (1000, 0), (1000, 1)]}
    rows = [
        Row("demo", "quick", label, seed, label, END, steps, name, value)
        for label, each in ended.items()
        for seed, (steps, solved) in enumerate(each)
        for name, value in (("steps_to_solve", float(steps)), ("solved", float(solved)))
    ]
    rows.append(Row("demo", "quick", "A", 2, "A", END, 700, "diverged", 1.0))
    claim = Claim("", "demo", "A", "B", "steps_to_solve", "lower")
    found = examined(claim, Outcomes(rows))
    assert (found.n, found.right, found.diverged) == (3, 1, 0)
    assert found.difference == pytest.approx(((900 - 4000) + 0 + (4000 - 1000)) / 3)


def test_a_run_that_diverged_has_not_solved_its_task_below_a_bound() -> None:
    ended = [(400.0, 1.0), (500.0, 1.0), (3.0, 0.0), (2000.0, 0.0)]
    for each, expected in ((ended[:3], (400, 500, 1000)), (ended, (400, 500, 2000, 2000))):
        rows = [
            row("A", seed, value, measure=name)
            for seed, pair in enumerate(each)
            for name, value in zip(("steps_to_solve", "solved"), pair, strict=True)
        ]
        rows.append(row("A", 2, 1.0, measure="diverged"))
        bounded = Claim("", "demo", "A", "", "steps_to_solve", "lower", bound=1000.0)
        found = examined(bounded, Outcomes(rows))
        assert (found.n, found.right, found.diverged) == (len(each), 2, 0)
        assert found.difference == pytest.approx(sum(expected) / len(each) - 1000)


@pytest.mark.parametrize(("at", "n", "lost"), [(12, 3, 1), (20, 3, 1), (21, 4, 0)])
def test_a_run_counts_in_a_window_if_it_diverged_after_it(at: int, n: int, lost: int) -> None:
    rows = [
        row(label, seed, value + seed / 8, split="train", step=step)
        for label, value in (("A", 1.0), ("B", 2.0))
        for seed in range(4)
        for step in (10, 15, 20, 30)
        if (label, seed) != ("A", 3) or step < at
    ]
    rows.append(row("A", 3, 1.0, measure="diverged", step=at))
    window = claim("lower", split="train", first=10, last=20)
    found = examined(window, Outcomes(rows))
    assert (found.n, found.right, found.diverged) == (n, n, lost)


def test_that_training_does_not_diverge_is_a_claim_on_every_run_that_ended() -> None:
    rows = [row("A", seed, 0.3, measure="loss") for seed in (0, 1, 3)]
    rows += [row("A", seed, 1.0, measure="diverged") for seed in (2, 4)]
    rows.append(row("B", 0, 1.0, measure="diverged"))
    outcomes = Outcomes(rows)
    assert outcomes.final("demo", "A", "diverged") == {0: 0.0, 1: 0.0, 2: 1.0, 3: 0.0, 4: 1.0}
    assert outcomes.diverged("demo", "A") == {2, 4}
    stable = Claim("", "demo", "A", "", "diverged", "lower", bound=0.5)
    found = examined(stable, outcomes)
    assert (found.n, found.right, found.diverged) == (5, 3, 0)
    assert found.difference == pytest.approx(0.4 - 0.5)


def test_a_quick_budget_may_have_a_bound_of_its_own() -> None:
    rows = [row("A", seed, 0.3 + seed / 10, budget=budget) for seed in range(4) for budget in BOTH]
    rows = [one._replace(experiment=one.budget) for one in rows]
    bounded = Claim("", "full", "A", "", "accuracy", "lower", "quick", bound=0.2, quick_bound=0.7)
    for budget, right, bound in zip(BOTH, (0, 4), (0.2, 0.7), strict=True):
        found = examined(bounded, Outcomes(rows), budget)
        assert (found.right, found.claim.bound) == (right, bound)
    plain = replace(bounded, quick_bound=None)
    assert examined(plain, Outcomes(rows), "quick").claim.bound == 0.2


def test_runs_without_a_number_are_told() -> None:
    rows = [row(name, seed, seed / 4 + (name == "A")) for name in "AB" for seed in range(4)]
    lost = [one for one in rows if (one.label, one.seed) != ("B", 2)]
    lost.append(rows[0]._replace(label="B", seed=2, measure="diverged", value=1.0))
    claim = Claim("", rows[0].experiment, "A", "B", rows[0].measure)
    found = examined(claim, Outcomes(lost))
    assert (found.n, found.diverged) == (3, 1)
    assert claim_rows([found])[0][4] == "3 of 3, 1 diverged"


def test_a_difference_of_points_that_is_rounding_is_shown_as_none() -> None:
    claim = Claim("", "demo", "A", "B", "accuracy")
    shown = {difference: claim_row(Finding(claim, 3, difference))[1] for difference in (3e-8, 0.01)}
    assert shown == {3e-8: "+0 points", 0.01: "+1 points"}
    losses = Finding(replace(claim, measure="loss"), 3, 3e-8)
    assert claim_row(losses, share=False)[1] == "+3e-08"
