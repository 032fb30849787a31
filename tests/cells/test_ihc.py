from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attractor.cells import IHCGRUCell, IHCLSTMCell, IRCGRUCell, IRCLSTMCell, LSTMState, Taps
from cells.against import Array, array, blocks, check, normal, noting, random_cell
from contracts.cells import seeded
from reference import ihc_gru, ihc_lstm


def weights_of(cell: Any, gates: str) -> dict[str, Array]:
    weights = blocks("W_", gates, cell.weight_gates) | {"W_A": array(cell.weight_candidate)}
    u, gamma = cell.connection.weight.detach().chunk(2)
    weights |= {"U_V": array(u), "Gamma": array(gamma)}
    if not cell.gate_reads_input:  # the released gate is the paper's with nothing there
        n = cell.input_size
        return weights | {"W_G": np.zeros((n, n)), "b_G": np.zeros(n)}
    gate = {"W_G": array(cell.connection.weight_gate), "b_G": array(cell.connection.bias_gate)}
    return weights | gate


@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize("bias", [None, 1.0])
@pytest.mark.parametrize("input_size", [3, 5])
def test_lstm_equals_the_reference(bias: float | None, input_size: int, reads: bool) -> None:
    cell = random_cell(IHCLSTMCell, input_size, 5, forget_bias=bias, gate_reads_input=reads)
    weights = weights_of(cell, "FIO")
    if bias is not None:
        weights["b_F"] = array(cell.bias_forget)
    check(cell, ihc_lstm.run, weights, {"h": 5, "c": 5}, LSTMState)


@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize("bias", [None, 1.0])
def test_gru_equals_the_reference(bias: float | None, reads: bool) -> None:
    cell = random_cell(IHCGRUCell, 3, 5, forget_bias=bias, gate_reads_input=reads)
    weights = weights_of(cell, "IR")
    if bias is not None:
        weights["b_I"] = array(cell.bias_forget)
    check(cell, ihc_gru.run, weights, {"h": 5}, lambda h: h)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_gate_limits(seed: int) -> None:
    g = seeded(seed)
    cell: Any = IHCGRUCell(3, 5, generator=g, dtype=torch.float64)
    x, h = normal(2, 3, generator=g), normal(2, 5, generator=g)
    read: list[torch.Tensor] = []
    taps = Taps(inner=noting(read))
    for bias, expected in ((-torch.inf, x), (torch.inf, h @ cell.connection.weight[:3].T)):
        with torch.no_grad():
            cell.connection.bias_gate.fill_(bias)
        cell.step(cell.prepare(x), h, taps)
        torch.testing.assert_close(read.pop(), expected @ cell.weight_gates.T)


@pytest.mark.parametrize(("ihc", "irc"), [(IHCLSTMCell, IRCLSTMCell), (IHCGRUCell, IRCGRUCell)])
def test_ihc_is_irc_where_neither_feeds_back(ihc: Any, irc: Any) -> None:
    highway, residual = random_cell(ihc, 3, 5), random_cell(irc, 3, 5)
    with torch.no_grad():
        residual.weight_gates.copy_(highway.weight_gates)
        residual.weight_candidate.copy_(highway.weight_candidate)
        residual.connection.alpha_raw.fill_(-torch.inf)
        highway.connection.bias_gate.fill_(-torch.inf)
    x = normal(2, 3)
    first, state = highway(x, highway.initial_state(2))
    torch.testing.assert_close(first, residual(x, residual.initial_state(2))[0])
    torch.testing.assert_close(highway(x, state)[0], residual(x, state)[0])
