"""Computed claims about equilibria, rates and Jacobians, beside cases that come out wrong."""

from typing import Any

import pytest
import torch

from attractor.cells import GRUCell
from attractor.dynamics import hopfield_step
from attractor.reproduction.computed import rates, robustness, vanishing


def values(found: Any) -> dict[tuple[str, str], float]:
    return {(one.row, one.column): one.value for one in found}


@pytest.fixture(autouse=True)
def _one_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (rates, robustness, vanishing):
        monkeypatch.setattr(module, "SEEDS", range(1))


def test_a_gru_of_held_gates_is_a_hopfield_network() -> None:
    stored = torch.tensor([[1.0, -1.0, 1.0, 1.0]], dtype=torch.float64)
    h = torch.tensor([[0.5, 0.2, -0.3, 0.9]], dtype=torch.float64)
    W = 4 * stored.T @ stored / 4
    for zeta, same in ((0.1, True), (0.2, False)):
        cell = robustness.as_gru(W, zeta)
        step = hopfield_step(stored, 0.1, 4.0)(h)
        assert torch.allclose(cell(torch.zeros(1, 1).double(), h)[0], step, atol=1e-12) == same


def test_equilibria_attract_below_the_transition_alone() -> None:
    found = values(robustness.hopfield())
    assert found["Hopfield, beta = 4", "overlap with the pattern"] > 0.9
    assert found["Hopfield, beta = 0.5", "overlap with the pattern"] < 0.05
    assert found["GRU, untrained", robustness.COLUMN] < 0.01
    assert found["GRU, weights times 8", robustness.COLUMN] > 0.1
    assert max(values(robustness.ladder()).values()) < 0.01


def test_a_cell_that_keeps_its_state_keeps_two_apart() -> None:
    cell = GRUCell(1, 4, dtype=torch.float64)
    with torch.no_grad():
        cell.weight_hh.zero_()
        cell.weight_ih.zero_()
        assert cell.bias is not None
        cell.bias[4:8] = -40.0  # z, which then lets nothing in
    states = torch.rand(2, 3, 4).double()
    assert robustness.apart(cell, torch.zeros(9, 3, 1).double(), states) == pytest.approx(1.0)


def test_the_printed_condition_of_dmsgd_lacks_its_sign() -> None:
    found = values(rates.stops())
    assert found["condition with its sign", "share that it tells right"] == 1.0
    assert found["condition as printed", "share that it tells right"] < 1.0


def test_rates_that_are_too_large_diverge_though_none_is_negative() -> None:
    found = values(rates.converges())
    small, large = found.values()
    assert small < 0 < large


def test_jacobians_are_below_their_bound_and_q_plus_r_by_hand() -> None:
    found = values(vanishing.flows())
    assert found["norm 0.9", "norm over its bound"] < 1
    assert found["norm 0.9", "log10 of the Jacobian's norm"] < -2
    assert found["weight 2", "mean slope"] < 1
    found = values(vanishing.sums())
    assert found["Q + R with the factor of t1", "log10 of the largest error"] < -12
    assert found["Q + R as printed", "log10 of the largest error"] > -3


def test_a_perfect_read_keeps_the_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    found = values(vanishing.reads())
    assert found["perfect read, 100 steps", "log10 of the norm"] > -0.1
    assert found["no read, 100 steps", "log10 of the norm"] < -3
    whole = vanishing.networks

    def unread(seed: int) -> Any:
        memory, h, x = whole(seed)
        return memory._replace(A=0 * memory.A), h, x

    monkeypatch.setattr(vanishing, "networks", unread)
    found = values(vanishing.reads())
    assert found["perfect read, 100 steps", "log10 of the norm"] < -3
