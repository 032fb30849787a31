"""Computed claims about cell states, beside runs of the cells and gates set by hand."""

from typing import Any

import pytest
import torch
from torch import Tensor

from attractor.cells import CELLS
from attractor.dynamics import gates
from attractor.reproduction.computed import cellstates
from attractor.reproduction.computed.found import Found


def values(found: Any) -> dict[tuple[str, str], float]:
    return {(one.row, one.column): one.value for one in found}


@pytest.fixture(autouse=True)
def _one_short_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cellstates, "SEEDS", range(1))
    monkeypatch.setattr(cellstates, "STEPS", 150)
    monkeypatch.setattr(cellstates, "EARLY", 75)


def test_a_cell_that_forgets_nothing_grows_and_saturates() -> None:
    found = values(cellstates.carousel())
    cell, x = cellstates.started("lstm1997", 0, 150)
    state = cell.initial_state(10)
    with torch.no_grad():
        for now in x:
            _, state = cell(now, state)
    assert found["LSTM of 1997", "mean |c|"] == pytest.approx(float(state.c.abs().mean()), 1e-4)
    slope = 1 - torch.tanh(state.c).square()
    assert found["LSTM of 1997", "mean slope of tanh at c"] == pytest.approx(
        float(slope.mean()), 1e-4
    )
    assert found["LSTM of 1997", "mean |c|"] > found["LSTM of 1997, step 75", "mean |c|"]
    assert found["LSTM", "share of |tanh(c)| above 0.95"] == 0.0


def test_an_output_that_ignores_its_input_does_not_change() -> None:
    cell, x = cellstates.started("lstm", 0, 20)
    assert cellstates.answers(cell, gates(cell, x), x) > 0.01
    cell, x = cellstates.started("lstm", 0, 20)
    with torch.no_grad():
        cell.weight_ih.zero_()
    assert cellstates.answers(cell, gates(cell, x), x) < 1e-12


def test_gates_that_rise_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    found = values(cellstates.decays())
    assert found["DecayNet, U(-1, 1)", "share of gates that rise"] > 0.3

    def quiet(name: str, seed: int, steps: int, **options: Any) -> tuple[Any, Tensor]:
        return CELLS[name](4, 32), torch.zeros(steps, 2, 4)

    monkeypatch.setattr(cellstates, "started", quiet)
    found = values(cellstates.decays())
    assert found["DecayNet, U(-1, 1)", "share of gates that rise"] < 0.2


def test_cell_states_grow_where_the_gates_release() -> None:
    found = values(cellstates.releases())
    for row in ("LSTM", "IHCLSTM", "IRCLSTM"):
        here, there = (found[f"{row}, f {side} 1 - i", "share of steps that grow"] for side in "><")
        assert here > there
    assert found["LSTM, always", "share of steps that release"] > 0.99
    assert found["LSTM, always", "growth from step 75 to 150"] < 1.2
    assert found["GRU", "largest magnitude"] < 1


def test_a_gate_held_open_makes_cell_states_grow_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """With f = 1 the growth that is claimed is found, so the measure can show it."""
    started = cellstates.started

    def held(name: str, seed: int, steps: int, **options: Any) -> tuple[Any, Tensor]:
        if options.get("forget_bias") == 3.0:
            options = {"forget_bias": 40.0}
        return started(name, seed, steps, **options)

    monkeypatch.setattr(cellstates, "started", held)
    found = values(cellstates.releases())
    assert found["LSTM, always", "growth from step 75 to 150"] > 1.3


@pytest.mark.slow
def test_cell_states_of_a_trained_decaynet_are_larger_where_its_gate_stays() -> None:
    found = {(one.row, one.column): one for one in cellstates.dichotomy()}
    large = found["units whose gate ends above 1/2", "mean |c| at the end"]
    assert isinstance(large, Found)
    assert large.value > found["units whose gate ends below 1/2", "mean |c| at the end"].value
    assert found["DecayNet", "accuracy"].value > 0.9
