"""Computed targets: numbers that are known otherwise, verdicts, and what is stored."""

import gzip
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from attractor.cli.commands import app
from attractor.errors import InputError
from attractor.reproduction import TARGETS
from attractor.reproduction.claims import examined
from attractor.reproduction.computed import (
    counts,
    learners,
    lifelong,
    memories,
    methods,
    systems,
)
from attractor.reproduction.computed.found import Found
from attractor.reproduction.computed.table import COMPUTED, compute
from attractor.reproduction.outcomes import END, EXACT, SIMULATED, WITHOUT_RUNS, Outcomes, Row
from attractor.reproduction.published import of_target
from attractor.reproduction.stock import kept
from attractor.reproduction.targets import Claim, target
from attractor.reproduction.verdicts import judged


def values(found: Any) -> dict[tuple[str, str], float]:
    return {(one.row, one.column): one.value for one in found}


def test_every_computed_target_is_stored_and_every_claim_of_it_decided() -> None:
    assert set(COMPUTED) <= set(TARGETS)
    for key in COMPUTED:
        found = kept(TARGETS[key])
        assert any(row.experiment in WITHOUT_RUNS for row in found.rows), key
        for claim in TARGETS[key].claims:
            if claim.experiment in WITHOUT_RUNS:
                assert examined(claim, found).n, claim.says
    using = {
        key
        for key, one in TARGETS.items()
        if any(claim.experiment in WITHOUT_RUNS for claim in one.claims)
    }
    assert using <= set(COMPUTED)


def test_numbers_of_the_documents_are_under_their_rows_and_columns() -> None:
    for key in ("000/section-4.2.5.3", "001/section-3.7.2", "001/section-3.5", "000/table-6.3"):
        found = {one.verdict for one in judged(TARGETS[key], kept(TARGETS[key]))}
        assert not found & {"not run", "not judged"}, (key, found)
    removed = [n for n in of_target("000/table-4.3") if n.column != "test perplexity"]
    by_place = {
        (one.number.row, one.number.column): one
        for one in judged(target("000/table-4.3"), kept(target("000/table-4.3")))
    }
    for number in removed:
        one = by_place[number.row, number.column]
        assert number.quoted or one.single is not None
    assert by_place["IRC-T-LSTM 2 layers 650/650", "RNN parameters"].verdict == "agrees"
    assert by_place["LSTM 3 layers 400/1150", "RNN parameters"].verdict == "better"


def test_counts_are_those_of_the_equations() -> None:
    found = values(counts.optimisers())
    assert found["LSTM-optimiser, one layer 20/20", "parameters"] == 4 * (400 + 400 + 20) / 1e3
    assert found["IHC-LSTM-optimiser, one layer 20/20", "parameters"] == 2.82
    removed = found["IHC-LSTM-optimiser, one layer 20/20", "parameters removed"]
    assert removed == pytest.approx(1 - 2820 / 3280)
    decoders = values(counts.decoders())
    assert decoders["LSTM decoder of DRAW", "parameters"] == 4 * 800 * 901 / 1e6
    assert values(counts.learner()) == {
        ("MLP learner 784-32-10", "parameters"): (785 * 32 + 33 * 10) / 1e3
    }
    assert counts.furthest([100, 94, 105], 100) == 94
    assert counts.size(nn.Linear(4, 3, bias=False)) == 12


def test_jacobians_maps_and_fields_have_their_known_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert max(values(systems.shortcuts()).values()) < 1e-12
    monkeypatch.setattr(torch, "lerp", lambda a, b, t: a + 1.01 * t * (b - a))
    wrong = values(systems.shortcuts())
    assert wrong["highway, T = 1", "largest error"] > 1e-3
    assert wrong["highway, T = 0", "largest error"] < 1e-12
    web = values(systems.slopes("0.5*x", "tanh(3*x)")(None))
    assert web["tanh(3*x)", "slope at the origin"] == pytest.approx(3.0)
    assert web["0.5*x", "growth in five steps"] == pytest.approx(0.5**5)
    assert values(systems.field()) == {
        ("field", "sinks"): 2,
        ("field", "points that are no sinks"): 1,
        ("field", "basins"): 2,
    }
    grown = {one.row: one.value for one in systems.cell_states()}
    assert grown == {"unregulated": 2, "large constant f": 3, "small constant f": 0}


def test_landscapes_are_as_drawn() -> None:
    updates = {one.row: one.value for one in systems.descent()}
    assert updates["good rate"] < updates["small rate"] < updates["large rate"] == 1000
    found = values(systems.widths())
    assert found["minimum 3", "lowest loss"] == pytest.approx(11.0, abs=1e-3)
    assert found["minimum 1", "lowest loss"] == pytest.approx(5.0, abs=0.01)
    ratio = found["minimum 2", "width of the bottom"] / found["minimum 1", "width of the bottom"]
    assert ratio == pytest.approx(1.5 / 0.9, rel=0.01)  # that of their widths
    assert learners.valley(torch.tensor([-1.0, 2.0])).tolist() == pytest.approx(
        [1.5, 0.5], abs=1e-2
    )


def test_simulations_have_the_expectations_that_can_be_worked_out() -> None:
    late = [one.value for one in memories.late_reads(last=3, many=50_000)]
    assert sum(late) / len(late) == pytest.approx(4 / 6, abs=0.005)  # (t1 + 1) / (2 t1)
    lengths = [one for one in memories.paths() if one.row.startswith("TARDIS")]
    assert {one.value for one in lengths} == {3.0}
    assert {one.seed for one in lengths} == set(range(10))
    found = values(memories.degrees())
    assert found["TARDIS, memory full", "largest degree of a vertex of its graph"] == 4
    assert found["TARDIS", "largest degree of a vertex of its graph"] > 4


def test_methods_that_grow_are_those_that_are_ticked() -> None:
    found = values(methods.expansions())
    column = "parameters after two tasks over before"
    assert found["Progressive Nets", column] > 1.5
    assert found["GEM", column] == 1.0
    assert found["Net2Net", column] == pytest.approx((65 * 32 + 33 * 10) / (65 * 16 + 17 * 10))
    assert found["methods", "growth as ticked, of 7"] == 7


def test_what_lifelong_learning_costs_is_that_of_its_sequences() -> None:
    found = values(lifelong.costs())
    steps = [2 * vectors + 1 for vectors in range(5, 63, 3)]  # said, a delimiter, said again
    numbers = [10 * (8 + 7) * each for each in steps]
    network = 4 * 128 * (8 + 128 + 1) + 7 * (128 + 1)
    assert found["copying", f"gradients of an update, {lifelong.TWICE}"] == 2
    kept = found["copying", f"numbers in the memory, {lifelong.TWICE}"]
    assert kept == pytest.approx(sum(numbers) / sum(numbers[:10]))
    share = found["copying", "numbers in the memory over those of a network a level"]
    assert share == pytest.approx(sum(numbers) / (20 * network))
    assert lifelong.columns(1) == 65 * 16 + 17 * 10
    assert lifelong.columns(2) == 2 * lifelong.columns(1) + 16 * 10  # reads the one before


def rows(experiment: str, label: str, each: list[float], measure: str = "m") -> list[Row]:
    return [
        Row(experiment, "full", label, seed, "", END, 0, measure, value)
        for seed, value in enumerate(each)
    ]


@pytest.mark.parametrize(
    ("value", "test", "bound", "margin", "verdict"),
    [
        (7.0, "lower", 4.5, 0.0, "contradicted"),
        (4.0, "lower", 4.5, 0.0, "holds"),
        (4.5, "lower", 4.5, 0.0, "contradicted"),
        (0.7, "higher", 0.95, 0.0, "contradicted"),
        (0.96, "higher", 0.95, 0.0, "holds"),
        (104.0, "same", 100.0, 5.0, "holds"),
        (94.9, "same", 100.0, 5.0, "contradicted"),
        (4.0, "steadier", 4.5, 0.0, "contradicted"),  # one number cannot show it
    ],
)
def test_an_exact_number_decides_by_its_side_of_a_bound(
    value: float, test: Any, bound: float, margin: float, verdict: str
) -> None:
    claim = Claim("", EXACT, "A", "", "m", test, bound=bound, margin=margin)
    found = examined(claim, Outcomes(rows(EXACT, "A", [value])), "quick")
    assert (found.n, found.verdict, found.p) == (1, verdict, None)
    assert found.difference == pytest.approx(value - bound)
    assert examined(claim, Outcomes([])).verdict == "not run"


def test_a_bound_of_several_seeds_is_tested_as_another_variant_would_be() -> None:
    claim = Claim("", SIMULATED, "A", "", "m", "lower", bound=3.0)
    found = examined(claim, Outcomes(rows(SIMULATED, "A", [2.0, 2.5, 2.2, 2.1])))
    assert found.right == 4
    assert found.difference == pytest.approx(-0.8)
    assert found.p is not None
    assert 0.001 < found.p < 0.01  # t = 7.4 of 3 degrees of freedom


def test_what_is_computed_is_kept_beside_the_runs(tmp_path: Path) -> None:
    call = ["reproduce", "004/appendix-b.1", "--keep", str(tmp_path)]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    assert "25.45" in done.output
    path = tmp_path / "004-appendix-b.1.computed.csv.gz"
    assert b"computed,full,MLP learner 784-32-10,0" in gzip.decompress(path.read_bytes())
    again = compute("004/appendix-b.1")
    assert again.rows == kept(target("004/appendix-b.1")).rows
    assert compute("001/table-4.2").rows == []
    with pytest.raises(InputError, match="000/table-6.1 needs runs"):
        CliRunner().invoke(
            app, ["reproduce", "000/table-6.1", "--computed"], catch_exceptions=False
        )


def test_a_quick_experiment_may_call_its_variants_otherwise() -> None:
    assert set(target("001/section-6.2.4").experiments("quick")["copy-2000-quick"][1]) == {
        "NRU, memory 144, T = 20"
    }
    assert Found("a", "b", 1.0).seed is None
