"""Every number and every claim of the documents belongs to a target, and targets to experiments."""

import pytest

from attractor.errors import InputError
from attractor.experiments.table import load
from attractor.reproduction import TARGETS, published, stock, target
from attractor.reproduction.claims import examined
from attractor.reproduction.costs import cost, costs, measured
from attractor.reproduction.outcomes import END, WITHOUT_RUNS, Outcomes, Row, stored
from attractor.reproduction.published import numbers, of_target
from attractor.reproduction.stock import status
from attractor.reproduction.targets import ASIDES, TWINS, Budget, Target
from attractor.reproduction.work import configs


def test_all_numbers_have_a_target_and_none_is_given_twice() -> None:
    assert len(numbers()) == 438
    assert sum(one.quoted for one in numbers()) == 33
    for one in numbers():
        sources = [source for source in TARGETS[one.target].sources if source.has(one)]
        assert len(sources) <= 1
        assert not (sources and one.quoted)


def test_every_label_is_a_variant_of_its_experiment() -> None:
    names: dict[str, set[str]] = {}
    for one in TARGETS.values():
        for budget in ("quick", "full"):
            for name, (_, labels) in one.experiments(budget).items():
                names.setdefault(name, set()).update(labels)
        for contest in one.contests:
            names.setdefault(contest.experiment, set()).update(contest.rows.values())
        assert set(one.derived) <= set(TARGETS)
    for name, used in names.items():
        assert used <= set(load(name)[1].variants()), name


def test_every_source_names_rows_and_columns_of_its_table() -> None:
    for one in TARGETS.values():
        for source in one.sources:
            given = [number for number in of_target(one.key) if source.has(number)]
            assert {number.row.removeprefix(source.prefix) for number in given} == set(source.rows)
            assert {number.column for number in given} == set(source.columns)


def test_a_claim_on_a_training_loss_reads_what_was_logged_in_training() -> None:
    asked = {"training loss": "train", "test loss": None}
    for words, split in asked.items():
        claims = [one for each in TARGETS.values() for one in each.claims if words in one.says]
        assert claims
        for one in claims:
            assert one.split == split, one.says
    ends = [c for one in TARGETS.values() for c in one.claims if c.split and not c.last]
    assert ends
    for one in ends:  # and has results, of every run that is stored
        assert one.quick is not None
        found = examined(one, stored(one.quick), "quick")
        assert found.n == 3, one.says


def test_claims_that_are_shown_elsewhere_are_of_runs_that_are_done_there() -> None:
    shown = {key: one.claims_of for key, one in TARGETS.items() if one.claims_of}
    assert {"000/figure-4.3", "000/figure-5.4", "003/section-5"} <= shown.keys()
    for key, others in shown.items():
        assert set(others) <= set(TARGETS[key].derived)
        for other in others:
            assert TARGETS[other].claims
            assert not {claim.experiment for claim in TARGETS[other].claims} & {*WITHOUT_RUNS}


def minutes(one: Target, budget: Budget) -> float:
    """What all runs of a target take, all of which must be known."""
    found = cost(one, budget)
    assert found is not None
    assert not found.least
    return found.minutes


def test_costs_are_of_the_seeds_that_files_have() -> None:
    for name, known in measured().items():
        assert known["seeds"] == len(load(name)[1].seeds)
    run = costs()["permuted-mnist"]["minutes"]
    assert minutes(target("table-6.1"), "quick") == pytest.approx(18 * run)
    assert minutes(target("table-6.1"), "full") == pytest.approx(20 * 7 * run)
    assert minutes(target("table-2.1"), "full") == pytest.approx(0.1)
    slow, fast = target("000/table-4.1"), target("000/section-4.1.6.1")  # with batch norm, without
    assert minutes(slow, "quick") == pytest.approx(3 * (3.2 + 2.9))
    assert minutes(fast, "quick") == pytest.approx(3 * 2 * 0.8)
    assert cost(target("section-3.7.4"), "full") is None


def test_costs_count_what_a_target_is_derived_from_and_each_run_once() -> None:
    own, of = target("000/figure-5.5"), target("004/section-4-figure-5")
    labels = {
        label
        for one in (own, of)
        for _, found in one.experiments("quick").values()
        for label in found
    }
    run = costs()["mtl2l-scenario-2-quick"]["minutes"]
    assert minutes(own, "quick") == pytest.approx(3 * len(labels) * run)
    assert minutes(target("000/figure-5.4"), "quick") == minutes(target("004/figure-4"), "quick")


def test_a_name_of_one_document_is_enough_and_of_two_is_not() -> None:
    assert target("table-6.1").slug == "000-table-6.1"
    with pytest.raises(InputError, match=r"000/table-4.1, 001/table-4.1"):
        target("table-4.1")
    with pytest.raises(InputError, match=r"Did you mean 'table-6.1'"):
        target("tabel-6.1")


def test_a_place_that_a_paper_shares_with_a_thesis_is_its_target() -> None:
    assert target("003/table-2") is TARGETS["000/table-4.3"]
    assert {target(one).key for one in ("003/figure-3", "002/table-1", "004/figure-2")} == {
        "000/figure-4.6",
        "000/table-4.1",
        "000/figure-5.3",
    }
    assert not TWINS.keys() & TARGETS.keys()
    assert len(TWINS) == sum(len(one.twins) for one in TARGETS.values())
    assert target("figure-5.8").key == "000/figure-5.7"
    with pytest.raises(InputError, match="002/table-2, 003/table-2"):
        target("table-2")


def test_every_table_and_figure_of_a_document_is_a_target_or_says_why_not() -> None:
    """As their captions number them; 003 has Roman numbers for its tables."""
    figures = {
        "000": {1: 6, 2: 10, 3: 7, 4: 7, 5: 11, 6: 18},
        "001": {2: 3, 3: 7, 4: 8, 5: 5},
    }
    tables = {"000": {2: 1, 3: 2, 4: 3, 5: 2, 6: 6}, "001": {3: 4, 4: 3, 5: 1}}
    papers = {"002": (7, 2), "003": (3, 2), "004": (5, 1)}
    every = {
        f"{document}/{kind}-{chapter}.{number}"
        for kind, counts in (("figure", figures), ("table", tables))
        for document, chapters in counts.items()
        for chapter, most in chapters.items()
        for number in range(1, most + 1)
    }
    for document, (drawn, printed) in papers.items():
        every |= {f"{document}/figure-{number}" for number in range(1, drawn + 1)}
        every |= {f"{document}/table-{number}" for number in range(1, printed + 1)}
    known = {*TARGETS, *TWINS, *ASIDES}
    assert every <= known, every - known
    assert not ASIDES.keys() & {*TARGETS, *TWINS}


def test_a_place_without_anything_to_compare_says_what_it_is() -> None:
    for name in ("000/figure-1.3", "figure-1.3", "003/table-1"):
        with pytest.raises(InputError, match=r"but 00\d/\S+ cannot: (a drawing|equations) of"):
            target(name)
    assert target("figure-3.5").key == "001/figure-3.5"  # 000 has a drawing of that number
    with pytest.raises(InputError, match="000/figure-5.2, 001/figure-5.2"):
        target("figure-5.2")


def test_a_quick_budget_has_few_seeds_and_a_derived_target_the_runs_of_others() -> None:
    quick = configs(target("table-6.1"), "quick")
    assert {run.seed for run in quick} == {0, 1, 2}
    assert len(quick) == 18
    assert len(configs(target("table-6.1"), "full", [7])) == 7  # and the control at another rate
    derived = configs(target("001/table-4.1"), "full", [0])
    assert {"copy", "copy-200", "denoise", "psmnist", "ptb-char"} <= {r.experiment for r in derived}
    assert configs(target("table-2.1"), "quick") == []
    with pytest.raises(InputError, match=r"Its note: quoted"):
        configs(target("section-3.7.4"), "quick")


def test_what_there_is_of_a_target_is_told() -> None:
    assert status(target("002/table-2")) == "stored: full, 40 seeds"
    assert status(target("002/appendix-c")) == "stored: full, 40 seeds"  # by table 2
    assert status(target("001/section-5.4.3")).endswith(" seeds, and computed")
    assert status(target("table-2.1")) == "computed"
    assert status(target("section-3.7.4")) == "quoted"


def test_fewer_seeds_than_planned_are_told_beside_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    own = target("table-6.4")
    ((name, (_, labels)),) = own.experiments("full").items()

    def keeping(counts: dict[str, int]) -> None:
        rows = [
            Row(name, "full", label, seed, "r", END, 1, "accuracy", 0.5)
            for label in labels
            for seed in range(counts.get(label, counts[""]))
        ]
        known = Outcomes(rows)
        monkeypatch.setattr(stock, "stored", lambda asked: known if asked == name else Outcomes([]))

    keeping({"": 8})
    assert status(own) == "stored: full, 8 of 20 seeds"
    keeping({"": 20, labels[0]: 3})
    assert status(own) == "stored: full, 3 to 20 of 20 seeds"
    keeping({"": 20})
    assert status(own) == "stored: full, 20 seeds"
    keeping({"": 21})
    assert status(own) == "stored: full, 21 seeds"
    keeping({"": 0, labels[0]: 1})
    assert status(own) == f"stored: full, 1 of {len(labels)} variants, 1 of 20 seeds"


def test_published_numbers_are_those_of_an_experiment() -> None:
    found = {(one.label, one.measure): one.number.value for one in published("permuted-mnist")}
    assert found["EWC, strength 1", "first_task_accuracy"] == 64.8
    assert found["MetaSGD-CL, old rates 0.1", "accuracy"] == 75.8
    transfer = published("permuted-mnist-networks")
    assert {one.number.scale for one in transfer} == {100.0}
