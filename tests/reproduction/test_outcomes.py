"""Tables of numbers: what counts for a run that solved nothing, and how long curves are thinned."""

from pathlib import Path

import pytest

from attractor.reproduction import comparisons
from attractor.reproduction.comparisons import Column, Comparison
from attractor.reproduction.outcomes import END, LONGEST, Outcomes, Row, of_runs
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


@pytest.mark.parametrize(("logged", "kept"), [(99, 99), (100, 100), (101, 51), (250, 84)])
def test_long_curves_are_thinned_to_the_most_that_are_kept(
    logged: int, kept: int, tmp_path: Path
) -> None:
    rows = [{"step": step, "split": "valid", "loss": 1.0 / (step + 1)} for step in range(logged)]
    run = Run(
        folder=tmp_path / "a-0",
        config={"experiment": "demo", "budget": "quick", "label": "A", "seed": 0},
        rows=tuple(rows),
        outcome={"steps": logged, "test": {"loss": 0.5}},
        status="done",
        environment={},
    )
    found = of_runs([run], [("demo", "A")]).series("demo", "A", "loss", "valid")[0]
    assert len(found) == kept <= LONGEST
    assert found[0] == 1.0


def test_a_run_that_diverged_but_has_the_measure_is_not_told_as_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [row("LSTM", seed, "solved", float(seed < 2)) for seed in range(3)]
    found = Outcomes([*rows, row("LSTM", 2, "diverged", 1.0)])
    monkeypatch.setattr(comparisons, "stored", lambda name: found)
    column = Column("solved", "solved", show="count")
    cell = comparisons._cell(Comparison("demo", (column,), {"LSTM": "a"}), column, "LSTM")
    assert (cell.text, cell.seeds, cell.diverged) == ("2 of 3", 3, 0)
