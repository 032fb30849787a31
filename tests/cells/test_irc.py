from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._pytree import tree_map

from attractor.cells import (
    IRCFastGRNNCell,
    IRCGRUCell,
    IRCLSTMCell,
    IRCSRUCell,
    IRCTLSTMCell,
    LSTMState,
    Taps,
)
from attractor.cells.base import map_steps
from attractor.cells.irc import ResidualConnection
from attractor.cells.irc_diagonal import DiagonalConnection
from attractor.errors import InputError
from cells.against import Array, array, blocks, check, normal, noting, random_cell
from contracts.cells import seeded
from reference import irc_fastgrnn, irc_gru, irc_lstm, irc_sru, irc_tlstm

MATRIX = [(IRCGRUCell, irc_gru, "IR", "I"), (IRCLSTMCell, irc_lstm, "FIO", "F")]
DIAGONAL = [(IRCSRUCell, irc_sru, "FP"), (IRCTLSTMCell, irc_tlstm, "FO")]
BIASES = [None, 1.0]


def weights_of(cell: Any, gates: str) -> dict[str, Array]:
    weights = blocks("W_", gates, cell.weight_gates)
    weights |= {"W_A": array(cell.weight_candidate), "u_alpha": array(cell.connection.alpha_raw)}
    if isinstance(cell.connection, DiagonalConnection):
        return weights | {"u_omega": array(cell.connection.omega_raw)}
    return weights | {"U_V": array(cell.connection.weight)}


@pytest.mark.parametrize(("make", "reference", "gates", "forget"), MATRIX)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("input_size", [3, 5])
def test_equals_the_reference(
    make: Any, reference: Any, gates: str, forget: str, bias: float | None, input_size: int
) -> None:
    cell = random_cell(make, input_size, 5, forget_bias=bias)
    weights = weights_of(cell, gates)
    if bias is not None:
        weights[f"b_{forget}"] = array(cell.bias_forget)
    two = make is IRCLSTMCell
    state = {"h": 5, "c": 5} if two else {"h": 5}
    check(cell, reference.run, weights, state, LSTMState if two else lambda h: h)


@pytest.mark.parametrize("beta_per_unit", [False, True])
@pytest.mark.parametrize("bias", BIASES)
def test_fastgrnn_equals_the_reference(beta_per_unit: bool, bias: float | None) -> None:
    cell = random_cell(IRCFastGRNNCell, 3, 5, forget_bias=bias, beta_per_unit=beta_per_unit)
    weights = weights_of(cell, "F") | {"u_beta": array(cell.beta_raw)}
    if bias is not None:
        weights["b_F"] = array(cell.bias_forget)
    check(cell, irc_fastgrnn.run, weights, {"h": 5}, lambda h: h)


@pytest.mark.parametrize(("make", "reference", "gates"), DIAGONAL)
@pytest.mark.parametrize("bias", BIASES)
def test_diagonal_equals_the_reference(
    make: Any, reference: Any, gates: str, bias: float | None
) -> None:
    cell = random_cell(make, 5, 5, forget_bias=bias)
    weights = weights_of(cell, gates)
    if bias is not None:
        weights["b_F"] = array(cell.bias_forget)
    check(cell, reference.run, weights, {"h": 5, "c": 5}, LSTMState)


@pytest.mark.parametrize("bias", BIASES)
def test_sru_with_a_highway_bias_equals_the_reference(bias: float | None) -> None:
    cell = random_cell(IRCSRUCell, 5, 5, highway_bias=-1.0, forget_bias=bias)
    weights = weights_of(cell, "FP") | {"b_P": array(cell.bias_highway)}
    if bias is not None:
        weights["b_F"] = array(cell.bias_forget)
    check(cell, irc_sru.run, weights, {"h": 5, "c": 5}, LSTMState)


@pytest.mark.parametrize(("make", "reference", "gates"), DIAGONAL)
def test_other_sizes_are_the_square_cell_after_a_matrix(
    make: Any, reference: Any, gates: str
) -> None:
    cell = random_cell(make, 3, 5)
    matrix = cell.weight_in.detach()

    def run(weights: dict[str, Array], x: Array, **options: Any) -> Any:
        return reference.run(weights, x @ array(matrix).T, **options)

    check(cell, run, weights_of(cell, gates), {"h": 5, "c": 5}, LSTMState)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_input_is_the_input_when_alpha_is_zero(seed: int) -> None:
    g = seeded(seed)
    to: Any = {"device": None, "dtype": torch.float64}
    for kind in (ResidualConnection, DiagonalConnection):
        connection = kind(4, 4, "uniform", g, to)
        x, h = normal(2, 4, generator=g), normal(2, 4, generator=g)
        assert not torch.equal(x + connection(h), x)
        with torch.no_grad():
            connection.alpha_raw.fill_(-torch.inf)
        assert torch.equal(x + connection(h), x)


@pytest.mark.parametrize("make", [m for m, *_ in (*MATRIX, *DIAGONAL)] + [IRCFastGRNNCell])
def test_gates_read_the_input_alone_when_alpha_is_zero(make: Any) -> None:
    cell = random_cell(make, 5, 5)
    with torch.no_grad():
        cell.connection.alpha_raw.fill_(-torch.inf)
    state = tree_map(lambda s: s + 1, cell.initial_state(2))
    prepared = map_steps(lambda p: p[0], cell.prepare(normal(1, 2, 5)))
    read: list[torch.Tensor] = []
    cell.step(prepared, state, Taps(h=noting(read)))
    assert len(read) == 1
    assert not read[0].any()


@pytest.mark.parametrize("make", [m for m, *_ in (*MATRIX, *DIAGONAL)] + [IRCFastGRNNCell])
def test_chrono_initialisation_is_of_what_keeps(make: Any) -> None:
    """The kept share is 1 - 1/T for T uniform; a GRU's first gate is the share that is new."""
    cell = make(4, 500, t_max=100, generator=seeded())
    kept = torch.sigmoid(-cell.bias_forget if make is IRCGRUCell else cell.bias_forget)
    scale = 1 / (1 - kept)
    assert (scale > 2 - 1e-4).all()
    assert (scale < 100 + 1e-2).all()
    assert scale.mean().item() == pytest.approx(51, rel=0.1)
    assert make(4, 5).bias_forget is None


def test_initial_values() -> None:
    gru: Any = IRCGRUCell(3, 5, forget_bias=1)
    assert gru.bias_forget.tolist() == [-1.0] * 5  # i lets the new in
    assert gru.connection.alpha_raw.tolist() == [2.0] * 3
    sru = IRCSRUCell(5, 5, forget_bias=1, highway_bias=-1)
    assert sru.bias_forget is not None
    assert sru.bias_highway is not None
    assert (sru.bias_forget[0].item(), sru.bias_highway[0].item()) == (1.0, -1.0)
    assert sru.weight_in is None
    for make in (IRCSRUCell, IRCTLSTMCell):
        assert make(3, 5).connection.alpha_raw.tolist() == [2.0] * 5
        omega = make(3, 400).connection.omega_raw.detach()
        assert 0.0475 < omega.abs().max() <= 0.05
    square: Any = IRCLSTMCell(6, 6, recurrent_init="orthogonal", input_init="identity")
    u = square.connection.weight.detach()
    torch.testing.assert_close(u @ u.T, torch.eye(6))
    assert torch.equal(square.weight_candidate, torch.eye(6))
    fast = IRCFastGRNNCell(3, 2000, beta_per_unit=True)
    assert fast.beta_raw.std().item() == pytest.approx(0.1, rel=0.1)
    assert IRCFastGRNNCell(3, 5).beta_raw.item() == 1.0


@pytest.mark.parametrize("make", [m for m, *_ in (*MATRIX, *DIAGONAL)] + [IRCFastGRNNCell])
def test_the_start_of_a_bias_asks_for_biases(make: Any) -> None:
    match = f"{make.__name__} expects no forget_bias with bias=False, but got 1.0. Leave one of the"
    with pytest.raises(InputError, match=match):
        make(5, 5, bias=False, forget_bias=1.0)
    with pytest.raises(InputError, match="expects a bias, but got t_max=9 with bias=False"):
        make(5, 5, bias=False, t_max=9)
    if make is IRCSRUCell:
        with pytest.raises(InputError, match="expects no highway_bias with bias=False"):
            make(5, 5, bias=False, highway_bias=0.0)


def test_a_bias_may_start_at_nought() -> None:
    sru = IRCSRUCell(5, 5, forget_bias=0, highway_bias=0)
    for bias in (sru.bias_forget, sru.bias_highway):
        assert bias is not None
        assert bias.tolist() == [0.0] * 5
