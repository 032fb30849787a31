"""A table that counts who is among the best, against counts by hand."""

from dataclasses import replace
from typing import Any

import pytest

from attractor.reproduction import tables
from attractor.reproduction.derived import competing, places, standing
from attractor.reproduction.outcomes import END, Outcomes, Row
from attractor.reproduction.published import Number
from attractor.reproduction.tables import budget_of, number_rows, remark
from attractor.reproduction.targets import Contest, target


def row(label: str, seed: int, value: float, **more: Any) -> Row:
    own: dict[str, Any] = {"split": END, "step": 9, "measure": "accuracy", "budget": "full"} | more
    return Row(experiment="demo", label=label, seed=seed, run="r", value=value, **own)


def test_ties_share_a_place() -> None:
    contest = Contest("demo", "steps", {name: name for name in "ABCD"}, "lower")
    values = {
        "A": {0: 10.0, 1: 12.0, 2: 11.0},
        "B": {0: 11.0, 1: 11.0, 2: 12.0},  # not to be told from A
        "C": {0: 20.0, 1: 22.0, 2: 21.5},
        "D": {0: 30.0, 1: 32.5, 2: 31.0},
    }
    assert standing(values, contest) == {
        "A": (0, 2, 4),
        "B": (0, 2, 4),
        "C": (2, 1, 4),
        "D": (3, 0, 4),
    }
    rows = [
        row(name, seed, value, measure="steps")
        for name, by_seed in values.items()
        for seed, value in by_seed.items()
    ]
    other = Contest("empty", "steps", {"A": "A"}, "lower")
    found = {
        one.row: (one.among(1), one.among(2)) for one in places([contest, other], Outcomes(rows))
    }
    assert found == {
        "A": ((1, 0, 1), (1, 1, 1)),
        "B": ((1, 0, 1), (1, 1, 1)),
        "C": ((0, 0, 1), (0, 0, 1)),
        "D": ((0, 0, 1), (0, 0, 1)),
    }
    assert [one.asked for one in places([contest, other], Outcomes(rows))] == [2, 1, 1, 1]
    brief = replace(contest, experiment="elsewhere", quick=contest.experiment)
    assert places([brief], Outcomes(rows), "quick") == places([contest], Outcomes(rows))
    assert not any(one.tasks for one in places([brief], Outcomes(rows)))


def test_who_cannot_be_told_apart_is_not_better() -> None:
    values = {
        "A": {0: 0.5, 1: 0.5, 2: 0.5},
        "B": {0: 0.5, 1: 0.5, 2: 0.5},  # as where neither of two solved anything
        "C": {1: 0.9, 2: 0.91, 3: 0.92},  # shares but two seeds with A and B
        "D": {0: 0.9, 1: 0.91, 2: 0.92, 3: 0.94},
    }
    found = standing(values, Contest("demo", "accuracy", {name: name for name in values}))
    assert found == {"A": (1, 0, 4), "B": (1, 0, 4), "C": (0, 0, 4), "D": (0, 2, 4)}


@pytest.mark.parametrize(("seeds", "better"), [(3, 0), (5, 0), (6, 1)])
def test_seeds_that_all_agree_tell_networks_apart_from_six_of_them_on(
    seeds: int, better: int
) -> None:
    values = {name: dict.fromkeys(range(seeds), steps) for name, steps in {"A": 9, "B": 8}.items()}
    found = standing(values, Contest("demo", "steps", {"A": "A", "B": "B"}, "lower"))
    assert found == {"A": (better, 0, 2), "B": (0, better, 2)}


def test_a_place_takes_three_seeds_and_more_rivals_than_places() -> None:
    values = {"A": (10.0, 12.0, 11.0), "B": (20.0, 22.0, 21.5), "C": (5.0, 5.0), "D": (9.0,)}
    rows = [
        row(name, seed, value, measure="steps")
        for name, each in values.items()
        for seed, value in enumerate(each)
    ]
    contest = Contest("demo", "steps", {name: name for name in "ABCD"}, "lower")
    found = {one.row: (one.among(1), one.among(2)) for one in places([contest], Outcomes(rows))}
    none = ((0, 0, 0), (0, 0, 0))
    assert found == {"A": ((1, 1, 1), (0, 0, 0)), "B": ((0, 0, 1), (0, 0, 0)), "C": none, "D": none}
    assert competing([contest], Outcomes(rows)) == {"demo": 2}
    third = [row("C", 2, 5.0, measure="steps")]
    second = {one.row: one.among(2) for one in places([contest], Outcomes([*rows, *third]))}
    assert second == {"A": (1, 1, 1), "B": (0, 0, 1), "C": (1, 1, 1), "D": (0, 0, 0)}


def test_a_table_of_places_is_judged_once_all_that_can_compete_have_run() -> None:
    own = target("001/table-4.1")
    rows = [
        Row(one.experiment, "full", label, seed, "r", END, 9, measure, value)
        for one in own.contests
        for place, label in enumerate(one.rows.values())
        for seed in range(3)
        for measure, value in ((one.measure, place * (1 + seed / 8)), ("solved", 1.0))
    ]
    told = number_rows(own, Outcomes(rows), budget_of(own, Outcomes(rows)))
    assert {row[-1] for row in told} == {"agrees", "differs"}
    asked = {row: sum(row in one.rows for one in own.contests) for row in own.contests[-1].rows}
    assert min(asked.values()) < len(own.contests) == max(asked.values())
    assert all(f" of {asked[row[0]]}, " in row[3] for row in told)
    less = Outcomes(one for one in rows if one.experiment != "denoise")
    assert budget_of(own, less) == "quick"
    first = number_rows(own, less, "full")[0]
    assert first[-1] == f"not run: {asked[first[0]] - 1} of {asked[first[0]]} tasks"
    assert "`denoise` 0" in remark(own, less, "full")


def test_who_fails_in_most_seeds_is_not_among_the_best_whoever_else_fails() -> None:
    steps = {"A": (10.0, 11.0, 12.0), "B": (50.0, 50.0, 20.0), "C": (50.0, 19.0, 21.0)}
    rows = [
        row(name, seed, value, measure=measure)
        for name, each in steps.items()
        for seed, taken in enumerate(each)
        for measure, value in (("steps_to_solve", taken), ("solved", float(taken < 50)))
    ]
    contest = Contest("demo", "steps_to_solve", {name: name for name in "ABC"}, "lower")
    found = {one.row: one.among(2) for one in places([contest], Outcomes(rows))}
    assert found == {"A": (1, 0, 1), "B": (0, 0, 1), "C": (1, 0, 1)}
    last = places([contest], Outcomes(rows))[1]
    assert (last.row, last.tasks) == ("B", ((2, 0, 3),))
    half = [row("B", 3, 20.0, measure="steps_to_solve"), row("B", 3, 1.0, measure="solved")]
    found = {one.row: one.among(2) for one in places([contest], Outcomes([*rows, *half]))}
    assert found["B"] == (1, 0, 1)
    accuracy = Contest("demo", "solved", contest.rows)
    assert all(one.among(2).best for one in places([accuracy], Outcomes(rows)))


@pytest.mark.parametrize(
    ("seeds", "verdict"),
    [
        ((9.0, 9.5, 10.0), "agrees"),
        ((2.0, 16.0, 11.0), "undecided"),
        ((30.0, 30.5, 31.0), "differs"),
    ],
)
def test_a_place_that_rests_on_a_tie_is_undecided(
    seeds: tuple[float, ...], verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = target("001/table-4.1")
    contest = Contest("demo", "steps", {"NRU": "A", "GRU": "B"}, "lower")
    published = Number(own.key, "", "NRU", "tasks in top 1", 1.0, "tasks", "higher", "1")
    monkeypatch.setattr(tables, "of_target", lambda _: [published])
    rows = [
        row(label, seed, value, measure="steps")
        for label, each in (("A", seeds), ("B", (20.0, 20.5, 20.0)))
        for seed, value in enumerate(each)
    ]
    told = number_rows(replace(own, contests=(contest,)), Outcomes(rows), "full")
    assert [one[-1] for one in told] == [verdict]


def test_places_of_short_runs_are_told_and_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    own = target("001/table-4.1")
    names = {name: name for name in ("NRU", "GRU", "LSTM")}
    contests = (
        Contest("long", "steps", names, "lower", quick="demo"),
        Contest("longer", "steps", names, "lower", quick="other"),
    )
    numbers = [
        Number(own.key, "", "GRU", f"tasks in top {k}", 1.0, "tasks", "higher", "1") for k in (1, 2)
    ]
    monkeypatch.setattr(tables, "of_target", lambda _: numbers)
    rows = [
        row(label, seed, place * (10.0 + seed / 8), measure="steps", budget="quick")
        for place, label in enumerate(names)
        for seed in range(3)
    ]
    own = replace(own, contests=contests)
    told = number_rows(own, Outcomes(rows), "quick")
    assert [(one[3], one[-1]) for one in told] == [
        ("0 of 1, 0 surely", "quick"),  # NRU is before it
        ("1 of 1, 1 surely", "quick"),
    ]
    assert [(one[3], one[-1]) for one in number_rows(own, Outcomes(rows), "full")] == [
        ("", "not run: 0 of 2 tasks")
    ] * 2
    none = number_rows(own, Outcomes([]), "quick")
    assert [(one[3], one[-1]) for one in none] == [("", "not run: 0 of 2 tasks")] * 2
