"""Tables of variants: what stands in a cell, and on what a table says it rests."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from attractor.cli.commands import app
from attractor.errors import InputError
from attractor.experiments import EXPERIMENTS
from attractor.reproduction import TARGETS, comparisons
from attractor.reproduction.comparisons import COMPARISONS, Column, Comparison, compared
from attractor.reproduction.joining import join
from attractor.reproduction.outcomes import DIVERGED, END, EXACT, STORED, Outcomes, Row, read, write
from attractor.reproduction.pages import PART
from attractor.reproduction.races import RACES
from attractor.reproduction.summary import SUMMARY

DOCS = Path(__file__).parents[2] / "docs"
SHARE = {"measure": "accuracy", "unit": "%"}


def rows(label: str, values: Sequence[float], measure: str = "accuracy", **more: Any) -> list[Row]:
    split, step = more.get("split", END), more.get("step", 9)
    head = ("demo", "quick", label)
    return [Row(*head, seed, "a", split, step, measure, v) for seed, v in enumerate(values)]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Shows made-up results of the demo's variants A and B, with and without memories."""
    results = Outcomes(
        [
            *rows("A, 5", [0.5, 0.6, 0.7]),
            *rows("A, 9", [0.25]),
            *rows("B, 5", [0.1, 0.2, 0.3]),
            *rows("B, 9", [1.0, 1.0], DIVERGED),
            *rows("B, 5", [0.75, 0.25, 0.5], "loss", split="valid", step=4),
            *rows("B, 5", [9.0, 9.0, 9.0], "loss", split="valid", step=5),
            *rows("Both", [1.0, 1.0, 0.0], "solved"),
            *rows("Both", [1200.0, 800.0, 5000.0], "steps_to_solve"),
        ]
    )
    labels = ("A, 5", "A, 9", "B, 5", "B, 9", "Both", "Idle")
    monkeypatch.setattr(comparisons, "stored", lambda _: results)
    monkeypatch.setattr(comparisons, "_variants", lambda _: labels)

    def show(names: Sequence[str], *columns: dict[str, Any], **more: Any) -> list[str]:
        one = Comparison(
            "demo", tuple(Column(**c) for c in columns), {n: n.lower() for n in names}, **more
        )
        monkeypatch.setitem(COMPARISONS, "made-up", one)
        return compared("made-up").splitlines()[2:]

    return show


def test_a_grid_has_a_variant_in_each_cell(shown: Any) -> None:
    found = shown(
        ["A", "B", "Idle"],
        {"head": "none", **SHARE},
        {"head": "5", "variants": ["{}, 5"], **SHARE},
        {"head": "9", "variants": ["{}, 9"], **SHARE},
        {"head": "loss", "variants": ["{}", "{}, 5"], "measure": "loss", "split": "valid"}
        | {"step": 4, "digits": 2},
    )
    assert found == [
        "| a |  | 60.0 ± 24.8 | 25.0 (n = 1) | not run |",
        "| b |  | 20.0 ± 24.8 | all diverged (n = 2) | 0.50 ± 0.62 |",
        "| idle | not run |  |  | not run |",
        "",
        "`attractor run demo`, quick budget, 3 seeds where no n is given, ± 95% of the mean.",
    ]


def test_seeds_counts_and_medians_where_unsolved_runs_are_the_last(shown: Any) -> None:
    found = shown(
        ["Both"],
        {"head": "solved", "measure": "solved", "show": "count"},
        {"head": "update", "measure": "steps_to_solve", "show": "median", "digits": 0},
        {"head": "by seed", "measure": "steps_to_solve", "show": "seeds", "digits": 0},
        {"head": "theirs", "published": {"Both": "1 ± 2"}},
        source="Somebody (2020), table 1",
    )
    assert found == [
        "| both | 2 of 3 | 1,200 (800 to 1,200) | 1,200, 800, 5,000 | 1 ± 2 |",
        "",
        "`attractor run demo`, quick budget, 3 seeds. Published: Somebody (2020), table 1.",
    ]


def test_numbers_of_a_target_stand_beside_ours(shown: Any) -> None:
    table = {"target": "002/table-2", "printed": "test accuracy, mean"}
    rows = {"A": "MNIST, LSTM 32 units"}
    found = shown(["A", "B"], {"head": "theirs", "published": rows, **table}, source="theirs")
    assert found[:2] == ["| a | 95.1 ± 0.2 |", "| b |  |"]
    with pytest.raises(AssertionError, match="002/table-2 has 0 numbers"):
        shown(["A"], {"head": "theirs", "published": {"A": "Nobody"}, **table}, source="theirs")


def test_two_variants_are_compared_seed_by_seed_or_as_samples(shown: Any) -> None:
    beside = {"head": "5", "variants": ["{}, 5 less B, 5"], "measure": "accuracy"}
    found = shown(
        ["A", "B", "other/A"],
        beside,
        {"head": "9", "variants": ["{}, 5 less B, 9"], "measure": "accuracy", "show": "seeds"},
        beside | {"show": "means", "unit": "%"},
        beside | {"show": "deviations"},
    )
    assert found == [
        "| a | 0.400 ± 0.000 | all diverged (n = 2) | 40.0 (17.3 to 62.7), p 0.008 | 1.00, p 1 |",
        "| b |  | all diverged (n = 2) |  |  |",
        "| other/a | not run | not run | not run | not run |",
        "",
        "`attractor run demo`, `attractor run other`, quick budget, 3 seeds where no n is given, "
        "± 95% of the mean, differences seed by seed.",
    ]


def test_a_row_may_be_of_another_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    column = Column("x", "loss", split="valid", step=4)
    one = Comparison("demo", (column,), {"A": "a", "other/A": "b"})
    monkeypatch.setitem(COMPARISONS, "made-up", one)
    assert comparisons.reads_curves("other")
    assert comparisons._experiment(one, column, "A") == "demo"
    assert comparisons._labels(column, "other/A", ["A"]) == ["A"]


def test_a_median_beyond_the_solved_is_not_known() -> None:
    column = Column("update", digits=0)
    infinite = float("inf")
    assert comparisons._median(column, {0: 5.0, 1: infinite, 2: infinite}) == "- (5 to 5)"
    assert comparisons._median(column, {0: infinite}) == "-"


def test_every_table_names_variants_measures_and_a_page() -> None:
    parts = {name for path in DOCS.rglob("*.md") for name in PART.findall(path.read_text())}
    assert parts <= {*COMPARISONS, *RACES, *SUMMARY, *TARGETS, "targets", "asides", "numbers"}
    for name, one in COMPARISONS.items():
        for key in one.rows:
            each = (column for column in one.columns if column.published is None)
            cells = [comparisons._cell(one, column, key) for column in each]
            assert any(cell.text for cell in cells), (name, key)
        given = [column.published for column in one.columns if column.published]
        assert all(set(published) <= set(one.rows) for published in given)
        assert bool(given) == bool(one.source), name


def test_what_is_stored_belongs_to_an_experiment_or_is_computed() -> None:
    computed = {f"{one.slug}.{EXACT}" for one in TARGETS.values()}
    for path in STORED.iterdir():
        name = path.name.removesuffix(".csv.gz")
        assert name in EXPERIMENTS or name in computed, path.name
        if name in EXPERIMENTS:
            assert {row.experiment for row in read(path).rows} == {name}


@pytest.fixture
def finished(monkeypatch: pytest.MonkeyPatch) -> Outcomes:
    """Two seeds of a variant that ended, with a row on the way."""
    runs = Outcomes([*rows("A", [0.5, 0.6]), *rows("A", [0.1, 0.2], "loss", split="train")])
    nothing = Outcomes([])
    monkeypatch.setattr(
        "attractor.reproduction.joining.finished",
        lambda name, out: runs if name == "demo" and out == Path("runs") else nothing,
    )
    return runs


@pytest.mark.usefixtures("finished")
def test_runs_are_joined_without_curves_that_nothing_reads(tmp_path: Path) -> None:
    path = tmp_path / "demo.csv.gz"
    assert join("demo", Path("runs"), tmp_path) == [(path, 2, 2)]
    assert {row.split for row in read(path).rows} == {END}
    write(Outcomes(rows("A", [0.9, 0.9, 0.9])), path)
    assert join("demo", Path("runs"), tmp_path) == [(path, 2, 3)]
    assert read(path).final("demo", "A", "accuracy") == {0: 0.5, 1: 0.6, 2: 0.9}
    with pytest.raises(InputError, match="finished runs of rules in runs, as it is configured"):
        join("rules", Path("runs"), tmp_path)
    with pytest.raises(InputError, match="Did you mean 'table-6.1'"):
        join("tabel-6.1", Path("runs"), tmp_path)


def test_and_with_those_that_are_there_or_are_read(
    tmp_path: Path, finished: Outcomes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "demo.csv.gz"
    write(Outcomes(rows("A", [0.1], "loss", split="train")), path)
    done = CliRunner().invoke(app, ["reproduce", "demo", "--join", "--keep", str(tmp_path)])
    assert done.output.split() == f"{path}: 2 runs joined, 2 now".split()
    assert read(path).rows == finished.rows
    path.unlink()
    column = Column("x", "loss", split="train", step=9)
    monkeypatch.setitem(COMPARISONS, "made-up", Comparison("demo", (column,), {}))
    join("demo", Path("runs"), tmp_path)
    assert read(path).rows == finished.rows
