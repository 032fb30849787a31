"""Published numbers that are no measure at the end of a run: settings, pairs, curves, reasons."""

from typing import Any

import pytest
from scipy import stats

from attractor.cli.reproduce import _show
from attractor.reproduction import TARGETS
from attractor.reproduction.outcomes import END, Outcomes, Row, stored
from attractor.reproduction.pages import target_page
from attractor.reproduction.published import Number, of_target, published
from attractor.reproduction.stock import kept
from attractor.reproduction.tables import budget_of, number_rows
from attractor.reproduction.targets import Source, Target, target
from attractor.reproduction.verdicts import Judged, judged

KEY = "000/table-9.9"


def row(label: str, seed: int, value: float, **more: Any) -> Row:
    own: dict[str, Any] = {"split": END, "step": 9, "measure": "accuracy", "budget": "full"} | more
    return Row(experiment="demo", label=label, seed=seed, run="r", value=value, **own)


def seeds(label: str, values: list[float], **more: Any) -> list[Row]:
    return [row(label, seed, value, **more) for seed, value in enumerate(values)]


@pytest.fixture
def one(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Judges one number, of row A and column C, by a source and rows of runs."""

    def found(value: float, source: dict[str, Any], rows: list[Row], **more: Any) -> Judged:
        own: dict[str, Any] = {"unit": "nats", "better": "none", "lines": "1"} | more
        number = Number(KEY, "Table 9.9", "A", "C", value, **own)
        monkeypatch.setattr("attractor.reproduction.verdicts.of_target", lambda key: [number])
        given: dict[str, Any] = {"full": "demo", "rows": {"A": "A"}} | source
        (told,) = judged(Target(KEY, "table", "", sources=(Source(**given),)), Outcomes(rows))
        return told

    return found


def by_place(key: str) -> dict[tuple[str, str], Judged]:
    found = kept(target(key))
    told = judged(target(key), found, budget_of(target(key), found))
    return {(each.number.row, each.number.column): each for each in told}


def test_every_number_is_judged_or_says_why_not() -> None:
    for key, own in TARGETS.items():
        if own.contests:
            continue
        told = judged(own, kept(own))
        for each in told:
            assert (each.verdict == "not judged") == bool(each.why), (key, each.number)
        columns = {each.number.column for each in told if each.verdict == "not judged"}
        assert columns == set(own.unjudged), key


def test_a_reason_is_shown_in_the_place_of_a_verdict() -> None:
    (shown,) = number_rows(target("004/section-4-figure-5"), Outcomes([]), "full")
    assert shown[-1] == "not judged: read off a figure"


def test_settings_are_those_of_the_full_configuration() -> None:
    found = by_place("000/table-5.1")
    sgd, ours = found["SGD", "iterations"], found["M2SGD, U = 0.2", "iterations"]
    assert (sgd.single, sgd.verdict, sgd.ours) == (37500, "as set", None)
    assert (ours.single, ours.verdict) == (10000, "as set")
    longer = by_place("000/table-5.2")["SGD, 7850 iterations", "iterations"]
    assert (longer.single, longer.verdict) == (7850, "as set")
    criterion = by_place("001/table-3.3")[
        "success criterion", "validation binary cross entropy below"
    ]
    assert (criterion.single, criterion.verdict) == (0.02, "as set")
    rows = number_rows(target("000/table-5.1"), kept(target("000/table-5.1")), "quick")
    assert ["SGD", "iterations", "37,500 updates", "37,500", "", "", "as set"] in rows


def test_a_setting_that_is_another_is_told(one: Any) -> None:
    source = {"full": "m2sgd-table-5.1", "rows": {"A": "MetaSGD"}}
    source |= {"columns": {"C": "config:train.steps"}}
    assert one(10000, source, []).verdict == "as set"
    assert one(10001, source, []).verdict == "set otherwise"


def test_the_loss_without_memory_is_worked_out_by_the_task() -> None:
    found = by_place("001/figure-4.1")
    near = found["random baseline", "cross entropy, T = 100"]
    far = found["random baseline", "cross entropy, T = 200"]
    assert near.single == pytest.approx(0.173287, abs=1e-6)  # 10 ln 8 / 120
    assert far.single == pytest.approx(0.094520, abs=1e-6)  # 10 ln 8 / 220
    assert (near.verdict, far.verdict) == ("agrees", "agrees")


def test_what_a_task_works_out_can_differ(one: Any) -> None:
    source = {"full": "copy", "rows": {"A": "NRU"}, "columns": {"C": "task:baseline"}}
    assert one(0.17, source, []).verdict == "agrees"
    assert one(1.19, source, []).verdict == "differs"


def test_a_number_that_needs_no_runs_asks_for_none() -> None:
    assert "copy-200" not in target("001/figure-4.1").experiments("full")
    assert "copy" in target("001/figure-4.1").experiments("full")
    for key in ("000/figure-6.5", "000/section-6.1.5"):  # for claims alone, with seeds of its own
        assert all(seeds for seeds, _ in target(key).experiments("quick").values())


def test_synapses_left_are_those_that_are_not_pruned(one: Any) -> None:
    source = {"columns": {"C": "thousand_left"}}
    counts = seeds("A", [2000.0] * 3, measure="parameters")
    pruned = seeds("A", [0.25, 0.5, 0.75], measure="sparsity")
    assert one(2.0, source, counts).ours.values == (2.0, 2.0, 2.0)  # a rule that does not prune
    found = one(1.0, source, [*counts, *pruned])
    assert found.ours.values == (1.5, 1.0, 0.5)


def test_synapses_left_are_shown_beside_those_of_the_table() -> None:
    shown = by_place("000/table-5.1")
    every, half = shown["SGD", "synapses left"], shown["M2SGD, U = 0", "synapses left"]
    assert every.ours is not None
    assert half.ours is not None
    assert every.ours.mean == pytest.approx(25.45)
    assert (round(half.ours.mean, 1), half.verdict) == (13.0, "agrees")


def test_validation_accuracy_is_the_best_on_the_way(one: Any) -> None:
    source = {"columns": {"C": "accuracy"}, "split": "valid"}
    course = {10: 0.2, 20: 0.9, 30: 0.6}
    rows = [
        row("A", seed, value + seed / 100, split="valid", step=step)
        for seed in range(3)
        for step, value in course.items()
    ]
    rows += seeds("A", [0.99] * 3)
    found = one(91.0, source, rows, unit="%", better="higher")
    assert found.ours.values == pytest.approx((90.0, 91.0, 92.0))
    lower = one(0.2, source, rows, better="lower")
    assert lower.ours.values == pytest.approx((0.2, 0.21, 0.22))


def test_validation_accuracy_of_stored_runs_is_shown() -> None:
    stored = by_place("001/table-4.3")["NRU", "validation accuracy"]
    assert stored.ours is not None
    assert (stored.ours.n, stored.verdict) == (3, "quick")


def test_pairs_are_differences_ratios_and_shares_of_seeds_that_both_have(one: Any) -> None:
    rows = seeds("A", [1.0, 2.0, 6.0, 5.0]) + seeds("B", [2.0, 4.0, 8.0])
    source = {"columns": {"C": "accuracy"}, "against": {"A": "B"}}
    assert one(-1.7, source, rows).ours.values == (-1.0, -2.0, -2.0)
    ratio = one(0.5, {**source, "relation": "ratio"}, rows)
    assert ratio.ours.values == (0.5, 0.5, 0.75)
    less = one(50.0, {**source, "relation": "removed"}, rows, unit="%")
    assert less.ours.values == (50.0, 50.0, 25.0)
    spread = one(0.6, {**source, "columns": {"C": "accuracy/deviation"}}, rows)
    assert spread.single == pytest.approx((1 / 3) ** 0.5)
    assert spread.verdict == "no interval"


def test_a_pair_may_be_of_a_window(one: Any) -> None:
    rows = [
        row(label, seed, scale * step, split="train", step=step, measure="loss")
        for label, scale in (("A", 1.0), ("B", 2.0))
        for seed in range(3)
        for step in (79, 80, 90, 100, 101)
    ]
    source = {"columns": {"C": "loss"}, "against": {"A": "B"}, "split": "train"}
    assert one(-90.0, source | {"first": 80, "last": 100}, rows).ours.values == (-90.0,) * 3


A, B = [0.95, 0.96, 0.97, 0.96], [0.94, 0.93, 0.95]


@pytest.mark.parametrize(
    ("bound", "test", "verdict"),
    [(0.05, "higher", "agrees"), (0.01, "higher", "worse"), (0.05, "lower", "worse")],
)
def test_p_is_of_two_independent_samples_and_on_the_side_that_is_claimed(
    one: Any, bound: float, test: str, verdict: str
) -> None:
    expected = stats.ttest_ind(A, B).pvalue
    assert 0.01 < expected < 0.05
    rows = seeds("A", A) + seeds("B", B)
    source = {"columns": {"C": "accuracy/p"}, "against": {"A": "B"}, "test": test}
    found = one(bound, source | {"bounds": {"C": "below"}}, rows, better="lower")
    assert found.single == pytest.approx(expected)
    assert found.verdict == verdict
    assert one(0.5197, source, rows).verdict == "no interval"
    short = [each._replace(budget="quick") for each in rows]
    assert one(bound, source | {"bounds": {"C": "below"}}, short).verdict == "quick"


@pytest.mark.parametrize(
    ("value", "side", "verdict"),
    [  # a mean of 2.5, half a width of 1.24
        (1.0, "above", "agrees"),
        (2.0, "above", "undecided"),
        (3.0, "above", "undecided"),
        (4.0, "above", "differs"),
        (4.0, "below", "agrees"),
        (3.0, "below", "undecided"),
        (2.0, "below", "undecided"),
        (1.0, "below", "differs"),
    ],
)
def test_a_bound_is_kept_by_the_whole_interval(
    one: Any, value: float, side: str, verdict: str
) -> None:
    rows = seeds("A", [2.0, 3.0, 2.5])
    source = {"columns": {"C": "accuracy"}, "bounds": {"C": side}}
    found = one(value, source, rows)
    assert found.ours.half_width == pytest.approx(4.303 * 0.5 / 3**0.5, abs=1e-3)
    assert found.verdict == verdict


def test_updates_to_solve_are_not_known_of_runs_that_did_not(one: Any) -> None:
    def ended(label: str, each: list[tuple[float, float]]) -> list[Row]:
        steps, solved = zip(*each, strict=True)
        return [
            *seeds(label, list(steps), measure="steps_to_solve"),
            *seeds(label, list(solved), measure="solved"),
        ]

    source = {"columns": {"C": "steps_to_solve"}, "against": {"A": "B"}, "relation": "ratio"}
    quick_ones = ended("B", [(100, 1), (100, 1), (200, 1), (50, 1)])
    some = [*ended("A", [(300, 1), (200, 1), (800, 1), (900, 0)]), *quick_ones]
    found = one(2.0, source, some)
    assert (found.ours.values, found.unsolved, found.verdict) == ((3.0, 2.0, 4.0), 1, "not solved")
    none = [*ended("A", [(900, 0)] * 4), *quick_ones]
    found = one(2.0, source, none)
    assert (found.ours, found.unsolved, found.verdict) == (None, 4, "not solved")
    every = [*ended("A", [(300, 1), (200, 1), (800, 1), (100, 1)]), *quick_ones]
    assert one(2.0, source | {"bounds": {"C": "above"}}, every).verdict == "undecided"


def test_runs_of_the_other_variant_count_among_those_without_a_number(one: Any) -> None:
    source: dict[str, Any] = {"columns": {"C": "accuracy"}, "against": {"A": "B"}}
    rows = seeds("A", [1.0, 2.0, 3.0, 4.0, 5.0]) + seeds("B", [1.0, 1.0, 1.0])
    rows += [row("B", seed, 1.0, measure="diverged") for seed in (3, 4)]
    assert one(1.0, source, rows).diverged == 2
    source = {"columns": {"C": "steps_to_solve"}, "against": {"A": "B"}, "relation": "ratio"}
    both = [*seeds("A", [300.0] * 4, measure="steps_to_solve")]
    both += seeds("B", [100.0, 100.0, 100.0, 900.0], measure="steps_to_solve")
    both += seeds("A", [1.0] * 4, measure="solved")
    both += seeds("B", [1.0, 1.0, 1.0, 0.0], measure="solved")
    found = one(3.0, source, both)
    assert (found.ours.values, found.unsolved, found.verdict) == ((3.0,) * 3, 1, "not solved")


def test_a_network_that_solves_nothing_has_no_ratio() -> None:
    shown = number_rows(target("001/section-4.3.1"), kept(target("001/section-4.3.1")), "full")
    janet = [line for line in shown if line[0] == "JANET over NRU"]
    assert [line[-2:] for line in janet] == [["20 unsolved", "not solved"]] * 2


def test_parameters_removed_are_counted_in_the_runs() -> None:
    found = by_place("002/appendix-c")[
        "DecayNet 48 against LSTM 64 units, 28 inputs", "parameters removed"
    ]
    assert found.ours is not None
    assert found.ours.mean == pytest.approx(100 * (1 - 15226 / 24458), abs=0.01)
    assert found.verdict == "close"


def test_reports_show_published_numbers_beside_ends_alone() -> None:
    means = [each for each in published("rows-mnist") if each.measure == "accuracy"]
    assert {each.number.column for each in means} == {"test accuracy, mean"}
    assert {each.number.column for each in published("psmnist")} == {"test accuracy"}
    assert {each.number.column for each in published("decaynet-figure-4")} == set()
    assert len(of_target("001/table-4.3")) == 20


def test_runs_of_two_seeds_are_shown_at_the_budget_that_was_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    own = target("000/table-5.1")
    few = Outcomes(row for row in stored("m2sgd-table-5.1").rows if row.seed < 2)
    assert budget_of(own, few) == "quick"
    _show(own, few, "full")
    (line,) = (one for one in capsys.readouterr().out.splitlines() if "85.06" in one)
    assert "few seeds" in line
    page = target_page(own, few, {own.key: []}, "--budget full --seeds 0-1", "full")
    (row,) = (one for one in page.splitlines() if one.startswith("| MetaSGD | test accuracy |"))
    assert row.endswith("| 2 | few seeds |")


def test_a_number_is_rounded_as_it_is_printed_where_its_column_mixes_digits() -> None:
    found = by_place("000/table-4.3")
    removed = {row: one for (row, column), one in found.items() if column == "parameters removed"}
    few, many = removed["IRC-GRU 2 layers 650/650"], removed["IRC-SRU 3 layers 1150/1150"]
    assert (few.number.rounding, many.number.rounding) == (0.05, 0.005)  # 33.4 and 0.06
    assert few.single == pytest.approx(33.36, abs=0.005)
    assert {one.verdict for row, one in removed.items() if "IRC" in row} == {"agrees"}


def test_a_unit_that_is_a_legend_stands_in_brackets() -> None:
    shown = number_rows(target("001/table-3.3"), Outcomes([]), "full")
    assert "1 (1 = success, 0 = failure)" in {row[2] for row in shown}
    assert number_rows(target("000/table-6.1"), Outcomes([]), "full")[0][2].endswith(" %")
