"""Tables of numbers: what counts for a run that solved nothing, and how long curves are thinned."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from attractor.estimates import estimate
from attractor.reproduction import comparisons
from attractor.reproduction.claims import examined
from attractor.reproduction.comparisons import Column, Comparison
from attractor.reproduction.outcomes import (
    END,
    LONGEST,
    Outcomes,
    Row,
    Take,
    ends,
    of_runs,
    read,
    write,
)
from attractor.reproduction.published import Number
from attractor.reproduction.targets import Claim, Source, Target
from attractor.reproduction.verdicts import Judged, _judged
from attractor.runs.read import Run


def row(label: str, seed: int, measure: str, value: float) -> Row:
    return Row("demo", "quick", label, seed, label, END, 9, measure, value)


def test_a_run_that_solved_nothing_counts_as_the_longest_of_all_that_are_compared() -> None:
    ended = {"A": [(300.0, 1.0), (500.0, 0.0)], "B": [(800.0, 1.0), (200.0, 1.0)]}
    rows = [
        row(label, seed, measure, value)
        for label, each in ended.items()
        for seed, values in enumerate(each)
        for measure, value in zip(("steps_to_solve", "solved"), values, strict=True)
    ]
    found = Outcomes(rows).compared("demo", "steps_to_solve", ("A", "B"))
    assert found == {"A": {0: 300.0, 1: 800.0}, "B": {0: 800.0, 1: 200.0}}


def a_run(
    folder: Path,
    rows: Sequence[dict[str, Any]],
    status: Literal["done", "failed"] = "done",
    train: dict[str, Any] | None = None,
    **outcome: Any,
) -> Outcomes:
    """The numbers of the run of A with seed 0."""
    names = {"experiment": "demo", "budget": "full", "label": "A", "seed": 0}
    config = names | ({} if train is None else {"train": train})
    run = Run(folder / "a-0", config, tuple(rows), {}, outcome, status)
    return of_runs([run], [("demo", "A")])


def logged_by_a_run(losses: Sequence[float], folder: Path) -> Outcomes:
    rows = [{"step": step, "split": "valid", "loss": loss} for step, loss in enumerate(losses)]
    return a_run(folder, rows, steps=len(losses), test={"loss": 0.5})


def test_what_runs_logged_and_took_is_kept_of_every_split(tmp_path: Path) -> None:
    rows = [{"step": 5, "split": s, "loss": 0.1} for s in ("train", "valid", "test", "meta")]
    given: dict[str, Any] = {"parameters": 321, "seconds": 4.5, "log": "sha"}
    found = a_run(tmp_path, rows, steps=7, test={"loss": 0.5}, **given)
    assert {(row.split, row.step, row.measure, row.value) for row in found.rows} == {
        ("train", 5, "loss", 0.1),
        ("valid", 5, "loss", 0.1),
        ("test", 5, "loss", 0.1),
        (END, 7, "loss", 0.5),
        (END, 7, "parameters", 321.0),
        (END, 7, "seconds", 4.5),
    }


@pytest.mark.parametrize(
    ("train", "unsolved"),
    [(None, {}), ({"steps": 9}, {}), ({"stop_below": 0.1}, {"solved": 0.0, "steps_to_solve": 4.0})],
)
def test_only_a_run_that_was_to_solve_its_task_has_not_solved_it(
    train: dict[str, Any] | None, unsolved: dict[str, float], tmp_path: Path
) -> None:
    found = a_run(tmp_path, [], "failed", train, step=4)
    assert {row.measure: row.value for row in found.rows} == {"diverged": 1.0} | unsolved
    assert {row.step for row in found.rows} == {4}


def test_the_ends_of_runs_are_without_what_was_logged_and_their_file_without_a_time(
    tmp_path: Path,
) -> None:
    rows = [{"step": 5, "split": split, "loss": 0.1} for split in ("train", "valid", "test")]
    found = ends(a_run(tmp_path, rows, steps=7, test={"loss": 0.5}))
    assert [(one.split, one.value) for one in found.rows] == [(END, 0.5)]
    write(found, tmp_path / "a.csv.gz")
    assert (tmp_path / "a.csv.gz").read_bytes()[4:8] == bytes(4)  # of gzip: when it was made


def test_where_both_have_a_run_of_a_seed_nothing_of_the_older_one_stays(tmp_path: Path) -> None:
    older = logged_by_a_run([3.0, 2.0, 1.0], tmp_path)
    newer = logged_by_a_run([0.5], tmp_path)
    other = Outcomes([row("B", 0, "loss", 7.0)])
    assert set(older.joined(newer).joined(other).rows) == {*newer.rows, *other.rows}


@pytest.mark.parametrize(("logged", "kept"), [(99, 99), (100, 100), (101, 51), (250, 84)])
def test_long_curves_are_thinned_to_the_most_that_are_kept(
    logged: int, kept: int, tmp_path: Path
) -> None:
    outcomes = logged_by_a_run([1.0 / (step + 1) for step in range(logged)], tmp_path)
    found = outcomes.series("demo", "A", "loss", "valid")[0]
    assert len(found) == kept <= LONGEST
    assert found[0] == 1.0


@pytest.mark.parametrize(("better", "best"), [("lower", 0.25), ("higher", 4.0)])
@pytest.mark.parametrize("logged", [90, 300])
def test_the_best_is_that_of_all_rows_and_not_of_those_that_are_kept(
    logged: int, better: str, best: float, tmp_path: Path
) -> None:
    losses = [1.0] * logged
    losses[7], losses[11] = 0.25, 4.0  # not among every third or fourth
    found = logged_by_a_run(losses, tmp_path)
    number = Number("t", "Table 1", "row", "loss", best, "nats", better, "1")
    source = Source(full="demo", rows={"row": "A"}, columns={"loss": "loss"}, split="valid")
    one = _judged(Target("000/t", "table", "", sources=(source,)), number, found, "full")
    assert one.ours is not None
    assert one.ours.mean == best
    mean = found.window("demo", "A", "loss", "valid", 0, logged)[0]
    assert (mean == 1.0) == (logged == 300)  # a mean stays that of even rows
    path = tmp_path / "demo.csv.gz"
    write(found, path)
    highest = better == "higher"
    assert read(path).best("demo", "A", "loss", "valid", highest=highest) == {0: best}


def test_a_run_that_diverged_but_has_the_measure_is_not_told_as_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [row("LSTM", seed, "solved", float(seed < 2)) for seed in range(3)]
    found = Outcomes([*rows, row("LSTM", 2, "diverged", 1.0)])
    monkeypatch.setattr(comparisons, "stored", lambda name: found)
    column = Column("solved", "solved", show="count")
    cell = comparisons._cell(Comparison("demo", (column,), {"LSTM": "a"}), column, "LSTM")
    assert (cell.text, cell.seeds, cell.diverged) == ("2 of 3", 3, 0)


def test_a_run_that_was_ended_before_another_solved_the_task_says_nothing_of_either() -> None:
    ended = {
        "long": [(1500.0, 1.0), (900.0, 1.0), (1200.0, 1.0), (4000.0, 0.0)],
        "short": [(1000.0, 0.0), (1000.0, 0.0), (12.0, 0.0), (1000.0, 0.0)],
    }
    rows = [
        row(label, seed, measure, value)
        for label, each in ended.items()
        for seed, values in enumerate(each)
        for measure, value in zip(("steps_to_solve", "solved"), values, strict=True)
    ]
    rows.append(row("short", 2, "diverged", 1.0))
    found = Outcomes(rows).compared("demo", "steps_to_solve", ("long", "short"))
    assert found["long"] == {0: 1500.0, 1: 900.0, 2: 1200.0, 3: 4000.0}
    assert found["short"] == {1: 4000.0, 2: 4000.0, 3: 4000.0}


def test_a_run_counts_beside_the_last_of_all_that_solved_the_task_from_its_seed() -> None:
    ended = {"A": (1500.0, 1.0), "B": (900.0, 1.0), "C": (1000.0, 0.0), "D": (1500.0, 0.0)}
    rows = [
        row(label, 0, measure, value)
        for label, values in ended.items()
        for measure, value in zip(("steps_to_solve", "solved"), values, strict=True)
    ]
    found = Outcomes(rows).compared("demo", "steps_to_solve", ended)
    assert found == {"A": {0: 1500.0}, "B": {0: 900.0}, "C": {}, "D": {0: 1500.0}}


def logged(values: Sequence[float]) -> list[Row]:
    head = ("demo", "full", "A", 0, "A", "train")
    return [Row(*head, step, "loss", value) for step, value in enumerate(values)]


def test_a_window_has_a_mean_a_median_or_the_mean_change_from_row_to_row() -> None:
    found = Outcomes(logged([9.0, 1.0, 2.0, 12.0, 9.0]))
    taken: dict[Take, float] = {"mean": 5.0, "median": 2.0, "swing": 5.5}
    for take, value in taken.items():
        assert found.window("demo", "A", "loss", "train", 1, 3, take=take) == {0: value}
    assert found.window("demo", "A", "loss", "train", 3, 3, take="swing") == {}


def test_a_run_that_ended_with_no_finite_number_counts_as_lost() -> None:
    ended = {0: 1.0, 1: math.inf, 2: math.nan, 3: 2.0}
    rows = [row("A", seed, "loss", value) for seed, value in ended.items()]
    rows += [row("A", seed, "accuracy", 0.5) for seed in ended]
    rows += [row("B", seed, "loss", 3.0) for seed in ended]
    found = Outcomes(rows)
    assert found.final("demo", "A", "loss") == {0: 1.0, 3: 2.0}
    assert found.diverged("demo", "A") == {1, 2}
    told = examined(Claim("", "demo", "A", "B", "loss", test="lower", quick="demo"), found)
    assert (told.n, told.diverged, told.verdict) == (2, 2, "few seeds")
    other = examined(Claim("", "demo", "A", "B", "accuracy", bound=0.1), found)
    assert (other.n, other.diverged) == (4, 0)
    number = Number("000/table-9.9", "Table 9.9", "A", "C", 1.5, "nats", "lower", "1")
    source = Source("demo", rows={"A": "A"}, columns={"C": "loss"})
    assert _judged(
        Target(number.target, "table", "", sources=(source,)), number, found, "full"
    ) == (Judged(number, "A", estimate([1.0, 2.0]), "quick", diverged=2))


def test_a_window_with_what_is_not_finite_has_no_number() -> None:
    found = Outcomes(logged([1.0, math.inf, 3.0, 5.0]))
    assert found.window("demo", "A", "loss", "train", 0, 3) == {}
    assert found.window("demo", "A", "loss", "train", 2, 3) == {0: 4.0}
    assert found.diverged("demo", "A") == set()  # it went on
