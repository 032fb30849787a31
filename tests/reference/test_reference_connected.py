"""Reference checks: the irc and ihc cells."""

import math
from typing import Any

import numpy as np
import pytest

from reference import ihc_gru, ihc_lstm, irc_fastgrnn, irc_gru, irc_lstm, irc_sru, irc_tlstm
from reference.drawn import (
    DIAGONAL,
    GATES,
    ihc_weights,
    irc_weights,
    sequence,
    sigma,
)


@pytest.mark.parametrize("cell", list(GATES), ids=lambda c: c.__name__)
def test_irc_input_is_the_input_when_alpha_is_zero(cell: Any) -> None:
    w = irc_weights(cell, 3, 3) | {"u_alpha": np.full(3, -np.inf)}
    x = sequence(6, 3)
    _, _, steps = cell.run(w, x)
    np.testing.assert_array_equal(steps["v"], x)


@pytest.mark.parametrize("cell", list(GATES), ids=lambda c: c.__name__)
def test_irc_first_step_is_free_of_the_memory_and_later_ones_add_it(cell: Any) -> None:
    w, x = irc_weights(cell, 3, 3), sequence(6, 3)
    h, _, steps = cell.run(w, x)
    alpha = np.array([sigma(u) for u in w["u_alpha"]])
    feedback = np.diag(np.tanh(w["u_omega"])) if cell in DIAGONAL else w["U_V"]
    np.testing.assert_allclose(steps["v"][0], x[0], rtol=1e-15, atol=1e-14)
    np.testing.assert_allclose(
        steps["v"][1:], x[1:] + alpha * (h[:-1] @ feedback.T), rtol=1e-13, atol=1e-14
    )
    np.testing.assert_allclose(steps["a"], x @ w["W_A"].T, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("cell", list(GATES), ids=lambda c: c.__name__)
def test_irc_split_sequence_gives_the_same(cell: Any) -> None:
    w, x = irc_weights(cell, 3, 3), sequence(7, 3)
    whole, end, _ = cell.run(w, x)
    first, middle, _ = cell.run(w, x[:3])
    second, last, _ = cell.run(w, x[3:], state=middle)
    np.testing.assert_array_equal(whole, np.concatenate([first, second]))
    for key in end:
        np.testing.assert_array_equal(end[key], last[key])


def test_irc_gru_by_hand() -> None:
    w = {"U_V": np.array([[2.0]]), "u_alpha": np.array([0.0])}
    w |= {"W_I": np.array([[1.0]]), "W_R": np.array([[-1.0]]), "W_A": np.array([[3.0]])}
    h, _, _ = irc_gru.run(w, np.array([[1.0], [2.0]]))
    h1 = sigma(1) * sigma(-1) * 3
    v2 = 2 + 0.5 * 2 * h1
    h2 = (1 - sigma(v2)) * h1 + sigma(v2) * sigma(-v2) * 6
    assert h[:, 0] == pytest.approx([h1, h2])


def test_irc_lstm_by_hand() -> None:
    w = {"U_V": np.array([[2.0]]), "u_alpha": np.array([0.0]), "b_F": np.array([1.0])}
    w |= {f"W_{k}": np.array([[v]]) for k, v in zip("FIOA", (1.0, -1, 0.5, 3), strict=True)}
    h, _, _ = irc_lstm.run(w, np.array([[1.0], [2.0]]))
    c1 = sigma(-1) * 3
    h1 = sigma(0.5) * math.tanh(c1)
    v2 = 2 + h1
    c2 = sigma(v2 + 1) * c1 + sigma(-v2) * 6
    assert h[:, 0] == pytest.approx([h1, sigma(0.5 * v2) * math.tanh(c2)])


def test_irc_sru_by_hand() -> None:
    w = {"u_omega": np.array([1.0]), "u_alpha": np.array([2.0]), "b_P": np.array([-1.0])}
    w |= {f"W_{k}": np.array([[v]]) for k, v in zip("FPA", (1.0, -1, 3), strict=True)}
    h, state, _ = irc_sru.run(w, np.array([[1.0], [2.0]]))
    c1 = (1 - sigma(1)) * 3
    h1 = sigma(-2) * c1 + (1 - sigma(-2)) * 1
    v2 = 2 + sigma(2) * math.tanh(1) * h1
    c2 = sigma(v2) * c1 + (1 - sigma(v2)) * 6
    p2 = sigma(-v2 - 1)
    assert h[:, 0] == pytest.approx([h1, p2 * c2 + (1 - p2) * 2])
    assert state["c"] == pytest.approx([c2])


def test_irc_tlstm_by_hand() -> None:
    w = {"u_omega": np.array([1.0]), "u_alpha": np.array([2.0]), "b_F": np.array([1.0])}
    w |= {f"W_{k}": np.array([[v]]) for k, v in zip("FOA", (1.0, -1, 3), strict=True)}
    h, _, _ = irc_tlstm.run(w, np.array([[1.0], [2.0]]))
    c1 = (1 - sigma(2)) * 3
    h1 = sigma(-1) * c1
    v2 = 2 + sigma(2) * math.tanh(1) * h1
    c2 = sigma(v2 + 1) * c1 + (1 - sigma(v2 + 1)) * 6
    assert h[:, 0] == pytest.approx([h1, sigma(-v2) * c2])


def test_irc_fastgrnn_by_hand() -> None:
    w = {"U_V": np.array([[2.0]]), "u_alpha": np.array([0.0]), "u_beta": np.array([0.5])}
    w |= {"W_F": np.array([[1.0]]), "W_A": np.array([[3.0]])}
    h, _, _ = irc_fastgrnn.run(w, np.array([[1.0], [2.0]]))
    h1 = sigma(0.5) * (1 - sigma(1)) * 3
    f2 = sigma(2 + h1)
    assert h[:, 0] == pytest.approx([h1, f2 * h1 + sigma(0.5) * (1 - f2) * 6])


def test_irc_gru_bias_is_the_forget_bias_with_its_sign_turned() -> None:
    """With W_I = 0, b_I = -1 gives the weight sigma(1) to the old state."""
    w = irc_weights(irc_gru, 2, 3) | {"W_I": np.zeros((3, 2)), "b_I": -np.ones(3)}
    _, _, steps = irc_gru.run(w, sequence(1, 2))
    assert 1 - steps["i"][0] == pytest.approx([sigma(1)] * 3)


def test_irc_fastgrnn_is_a_convex_step_when_beta_is_one() -> None:
    w = irc_weights(irc_fastgrnn, 3, 4) | {"u_beta": np.array(np.inf)}
    h, _, steps = irc_fastgrnn.run(w, sequence(5, 3))
    f, a = steps["f"], steps["a"]
    np.testing.assert_allclose(h[1:], f[1:] * h[:-1] + (1 - f[1:]) * a[1:], rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("cell", DIAGONAL, ids=lambda c: c.__name__)
def test_diagonal_feedback_needs_as_many_units_as_inputs(cell: Any) -> None:
    with pytest.raises(ValueError, match="as many units as inputs"):
        cell.run(irc_weights(cell, 2, 3), sequence(3, 2))


@pytest.mark.parametrize(("cell", "gates"), [(ihc_lstm, "FIOA"), (ihc_gru, "IRA")])
def test_ihc_gate_limits(cell: Any, gates: str) -> None:
    w, x = ihc_weights(gates, 3, 4), sequence(6, 3)
    _, _, closed = cell.run(w | {"b_G": np.full(3, -np.inf)}, x)
    np.testing.assert_array_equal(closed["v"], x)
    h, _, opened = cell.run(w | {"b_G": np.full(3, np.inf)}, x)
    np.testing.assert_array_equal(opened["v"][0], np.zeros(3))
    np.testing.assert_allclose(opened["v"][1:], h[:-1] @ w["U_V"].T, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(
    ("ihc", "irc", "gates"), [(ihc_lstm, irc_lstm, "FIOA"), (ihc_gru, irc_gru, "IRA")]
)
def test_ihc_and_irc_agree_where_neither_feeds_back(ihc: Any, irc: Any, gates: str) -> None:
    w, x = ihc_weights(gates, 3, 4), sequence(6, 3)
    highway, _, _ = ihc.run(w | {"b_G": np.full(3, -np.inf)}, x)
    residual, _, _ = irc.run(w | {"u_alpha": np.full(3, -np.inf)}, x)
    np.testing.assert_array_equal(highway, residual)


def test_ihc_lstm_by_hand() -> None:
    one = np.ones((1, 1))
    w = {"W_G": one, "Gamma": 2 * one, "b_G": np.array([-1.0]), "U_V": 3 * one}
    w |= {"W_F": one, "W_I": -one, "W_O": 0.5 * one, "W_A": 2 * one}
    h, _, steps = ihc_lstm.run(w, np.array([[1.0], [2.0]]))
    v1 = 0.5
    c1 = sigma(-v1) * 2
    h1 = sigma(0.5 * v1) * math.tanh(c1)
    g2 = sigma(2 + 2 * h1 - 1)
    v2 = (1 - g2) * 2 + g2 * 3 * h1
    c2 = sigma(v2) * c1 + sigma(-v2) * 4
    assert steps["v"][:, 0] == pytest.approx([v1, v2])
    assert h[:, 0] == pytest.approx([h1, sigma(0.5 * v2) * math.tanh(c2)])
