"""The NumPy references checked against hand-worked values and identities."""

import math
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from reference import (
    counts,
    decaynet,
    fastgrnn,
    ihc_gru,
    ihc_lstm,
    irc_fastgrnn,
    irc_gru,
    irc_lstm,
    irc_sru,
    irc_tlstm,
    normalised,
    sru,
    tlstm,
)

Array = npt.NDArray[np.float64]

LSTM = [f"{kind}_{gate}" for gate in "FIOA" for kind in "WUb"]
GATES = {
    irc_gru: "IRA",
    irc_lstm: "FIOA",
    irc_sru: "FPA",
    irc_tlstm: "FOA",
    irc_fastgrnn: "FA",
}
DIAGONAL = (irc_sru, irc_tlstm)


def sigma(z: float) -> float:
    return 1 / (1 + math.exp(-z))


def draw(names: list[str], n: int, m: int, seed: int = 0) -> dict[str, Array]:
    """Standard normal weights: W (m, n), U (m, m), everything else (m,)."""
    g = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {"W": (m, n), "U": (m, m)}
    return {name: g.standard_normal(shapes.get(name[0], (m,))) for name in names}


def irc_weights(cell: ModuleType, n: int, m: int, seed: int = 0) -> dict[str, Array]:
    g = np.random.default_rng(seed)
    w = {f"W_{k}": g.standard_normal((m, n)) for k in GATES[cell]}
    w["u_alpha"] = g.standard_normal(n)
    if cell in DIAGONAL:
        w["u_omega"] = g.standard_normal(n)
    else:
        w["U_V"] = g.standard_normal((n, m))
    if cell is irc_fastgrnn:
        w["u_beta"] = g.standard_normal(m)
    return w


def ihc_weights(gates: str, n: int, m: int, seed: int = 0) -> dict[str, Array]:
    g = np.random.default_rng(seed)
    w = {f"W_{k}": g.standard_normal((m, n)) for k in gates}
    w |= {"W_G": g.standard_normal((n, n)), "b_G": g.standard_normal(n)}
    return w | {"U_V": g.standard_normal((n, m)), "Gamma": g.standard_normal((n, m))}


def sequence(T: int, n: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal((T, n))


# DecayNet


def test_decaynet_by_hand() -> None:
    w: dict[str, Array] = {f"{kind}_{k}": np.zeros((1, 1)) for k in "FIOA" for kind in "WU"}
    w |= {"b_I": np.zeros(1), "b_O": np.zeros(1), "b_A": np.ones(1)}
    # W_F = U_F = 0: the angle falls by pi/4 * 1/2 a step, from pi/2 to pi/4 after D = 2 steps.
    h, state, steps = decaynet.run(w, np.zeros((2, 1)))
    assert steps["p"][:, 0] == pytest.approx([3 * math.pi / 8, math.pi / 4])
    assert steps["f"][:, 0] == pytest.approx([math.sin(3 * math.pi / 8), math.sqrt(0.5)])
    c1 = 0.5 * math.tanh(1.0)
    c2 = math.sqrt(0.5) * c1 + 0.5 * math.tanh(1.0)
    assert steps["c"][:, 0] == pytest.approx([c1, c2])
    assert h[:, 0] == pytest.approx([0.5 * math.tanh(c1), 0.5 * math.tanh(c2)])
    assert state["p"] == pytest.approx([math.pi / 4])


def test_decaynet_forget_gate_never_rises_while_the_pre_activation_is_at_least_minus_three() -> (
    None
):
    names = [k for k in LSTM if k != "b_F"]
    for seed in range(20):
        w = draw(names, 3, 4, seed) | {"U_F": np.zeros((4, 4))}
        x = sequence(30, 3, seed)
        lowest = (x @ w["W_F"].T).min()
        w["W_F"] = w["W_F"] * min(1.0, 3 / -lowest)
        _, _, steps = decaynet.run(w, x)
        assert steps["pre"].min() >= -3 - 1e-12
        assert np.all(np.diff(steps["f"], axis=0) <= 1e-12)


def test_decaynet_forget_gate_rises_below_minus_three_and_is_clamped_where_the_angle_is_not() -> (
    None
):
    w = draw([k for k in LSTM if k != "b_F"], 1, 1) | {"U_F": np.zeros((1, 1))}
    w["W_F"] = np.ones((1, 1))
    x = np.array([[9.0], [9.0], [-15.0], [-27.0]])  # falls past 0, then rises past pi/2
    _, _, steps = decaynet.run(w, x, D=2)
    assert steps["p"][:, 0] == pytest.approx([0, -math.pi / 2, 0, math.pi], abs=1e-12)
    assert steps["f"][1, 0] == 0
    assert steps["f"][3, 0] == 1


def test_decaynet_angle_spends_itself_exactly_at_the_bounds() -> None:
    w = draw([k for k in LSTM if k != "b_F"], 1, 2) | {"U_F": np.zeros((2, 2))}
    w["W_F"] = np.array([[3.0], [-3.0]])
    _, state, _ = decaynet.run(w, np.ones((7, 1)))
    assert state["p"] == pytest.approx([0, math.pi / 2], abs=1e-12)


def test_decaynet_refuses_a_forget_bias() -> None:
    with pytest.raises(ValueError, match="no forget bias"):
        decaynet.run(draw(LSTM, 2, 2), sequence(3, 2))


# The plain cells of Table I


def test_sru_by_hand() -> None:
    one = np.ones((1, 1))
    w = {"W_F": one, "W_P": 2 * one, "W_A": 3 * one}
    w |= {k: np.array([v]) for k, v in (("omega_F", 0.5), ("omega_P", -1), ("b_F", 0.1))}
    w["b_P"] = np.array([-0.2])
    h, state, _ = sru.run(w, np.array([[1.0], [0.5]]))
    f1, p1 = sigma(1.1), sigma(1.8)
    c1 = (1 - f1) * 3
    f2, p2 = sigma(0.5 + 0.5 * c1 + 0.1), sigma(1 - c1 - 0.2)
    c2 = f2 * c1 + (1 - f2) * 1.5
    assert h[:, 0] == pytest.approx([p1 * c1 + (1 - p1), p2 * c2 + (1 - p2) * 0.5])
    assert state["c"] == pytest.approx([c2])


def test_sru_with_an_identity_projection_is_the_sru() -> None:
    names = ["W_F", "W_P", "W_A", "omega_F", "omega_P", "b_F", "b_P"]
    w, x = draw(names, 3, 3), sequence(5, 3)
    plain, _, _ = sru.run(w, x, scale=1.5)
    projected, _, _ = sru.run(w | {"W_X": 1.5 * np.eye(3)}, x)
    np.testing.assert_allclose(plain, projected, rtol=1e-14, atol=1e-14)


def test_tlstm_by_hand() -> None:
    w = {f"{kind}_{k}": np.ones((1, 1)) for k in "FOA" for kind in "WU"}
    w |= {f"b_{k}": np.array([0.5]) for k in "FOA"}
    h, state, _ = tlstm.run(w, np.array([[1.0], [2.0]]))
    c1 = (1 - sigma(1.5)) * 1.5
    c2 = sigma(3.5) * c1 + (1 - sigma(3.5)) * 3.5
    assert h[:, 0] == pytest.approx([sigma(1.5) * c1, sigma(3.5) * c2])
    assert state["x"] == pytest.approx([2.0])
    original, _, _ = tlstm.run(w, np.array([[1.0]]), output_gate="tanh")
    assert original[:, 0] == pytest.approx([math.tanh(1.5) * c1])


def test_fastgrnn_by_hand() -> None:
    w = {k: np.ones((1, 1)) for k in ("W_F", "U_F")} | {k: -np.ones((1, 1)) for k in ("W_A", "U_A")}
    w |= {"b_F": np.array([1.0]), "b_A": np.array([0.0])}
    w |= {"u_beta": np.array([1.0]), "u_kappa": np.array([-4.0])}
    h, _, _ = fastgrnn.run(w, np.array([[1.0], [2.0]]))
    beta, kappa = sigma(1), sigma(-4)
    h1 = (beta * (1 - sigma(2)) + kappa) * math.tanh(-1)
    f2 = sigma(3 + h1)
    h2 = f2 * h1 + (beta * (1 - f2) + kappa) * math.tanh(-2 - h1)
    assert h[:, 0] == pytest.approx([h1, h2])


def test_fastgrnn_shared_is_the_separate_form_with_equal_matrices() -> None:
    w = draw(["W", "U", "b_F", "b_A"], 3, 4) | {"u_beta": np.array(1.0), "u_kappa": np.array(-4.0)}
    separate = w | {f"W_{k}": w["W"] for k in "FA"} | {f"U_{k}": w["U"] for k in "FA"}
    x = sequence(5, 3)
    np.testing.assert_array_equal(fastgrnn.run(w, x, shared=True)[0], fastgrnn.run(separate, x)[0])


def test_fastgrnn_keeps_its_state_at_the_end_of_the_gate() -> None:
    w = draw(["W_F", "W_A", "U_F", "U_A", "b_A"], 3, 4)
    w |= {"b_F": np.full(4, np.inf), "u_beta": np.array(0.3), "u_kappa": np.array(-np.inf)}
    h, _, _ = fastgrnn.run(w, sequence(5, 3), state={"h": np.arange(4.0)})
    np.testing.assert_array_equal(h[-1], np.arange(4.0))


# IRC and IHC


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


# Normalisers and regularisers


def lstm_by_hand(w: dict[str, Array], x: Array) -> Array:
    h = c = np.zeros(w["b_F"].shape[0])
    outputs = []
    for x_t in x:
        z = {k: w[f"W_{k}"] @ x_t + w[f"U_{k}"] @ h + w[f"b_{k}"] for k in "FIOA"}
        c = c / (1 + np.exp(-z["F"])) + np.tanh(z["A"]) / (1 + np.exp(-z["I"]))
        h = np.tanh(c) / (1 + np.exp(-z["O"]))
        outputs.append(h)
    return np.array(outputs)


def test_layer_norm_statistics_run_over_the_four_gates_together() -> None:
    """One unit, one step: h = 0 normalises to 0, and W x = (1, 2, 3, 6) by its own statistics."""
    w = {f"W_{k}": np.array([[v]]) for k, v in zip("FIOA", (1.0, 2, 3, 6), strict=True)}
    w |= {f"U_{k}": np.ones((1, 1)) for k in "FIOA"} | {f"b_{k}": np.zeros(1) for k in "FIOA"}
    w["beta_3"] = np.array([0.7])
    h, _, steps = normalised.lstm_layer_norm(w, np.ones((1, 1)), eps=0.5)
    f, i, o, a = ((v - 3) / 2 for v in (1, 2, 3, 6))  # variance (4 + 1 + 0 + 9) / 4 + 0.5 = 4
    assert steps["f"][0, 0] == pytest.approx(sigma(f))
    assert steps["c"][0, 0] == pytest.approx(sigma(i) * math.tanh(a))
    assert h[0, 0] == pytest.approx(sigma(o) * math.tanh(0.7))  # one unit: LN(c) is the shift


def test_layer_norm_does_not_see_the_scale_or_offset_of_its_sums() -> None:
    w, x = draw(LSTM, 3, 4), sequence(5, 3)
    scaled = w | {f"W_{k}": 7 * w[f"W_{k}"] for k in "FIOA"}
    plain, _, _ = normalised.lstm_layer_norm(w, x, eps=1e-12)
    other, _, _ = normalised.lstm_layer_norm(scaled, x, eps=1e-12)
    np.testing.assert_allclose(plain, other, rtol=1e-8)
    shifts = {f"beta_{j}_{k}": np.full(4, 0.3) for j in (1, 2) for k in "FIOA"}
    moved, _, _ = normalised.lstm_layer_norm(w | shifts, x)
    biased, _, _ = normalised.lstm_layer_norm(w | {f"b_{k}": w[f"b_{k}"] + 0.6 for k in "FIOA"}, x)
    np.testing.assert_allclose(moved, biased, rtol=1e-13, atol=1e-14)


def batch_norm_weights(n: int, m: int) -> dict[str, Array]:
    names = [f"gamma_{kind}_{k}" for kind in "hx" for k in "FIOA"] + ["gamma_c", "beta_c"]
    return draw([*LSTM, *names], n, m)


def test_batch_norm_statistics_are_those_of_each_step_over_the_batch() -> None:
    w = batch_norm_weights(3, 4)
    x = np.random.default_rng(3).standard_normal((5, 6, 3))
    h, _, steps = normalised.lstm_batch_norm(w, x, momentum=0.25)
    inputs = x @ w["W_F"].T
    np.testing.assert_allclose(steps["mean_x_F"], inputs.mean(axis=1), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(steps["var_x_F"], inputs.var(axis=1), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(steps["mean_c"], steps["c"].mean(axis=1), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(
        steps["var_h_O"][1:], (h @ w["U_O"].T).var(axis=1)[:-1], rtol=1e-12, atol=1e-14
    )
    np.testing.assert_array_equal(steps["var_h_O"][0], np.zeros(4))  # h_0 = 0 for all
    np.testing.assert_allclose(
        steps["stored_mean_x_F"], 0.25 * steps["mean_x_F"], rtol=1e-12, atol=1e-14
    )
    np.testing.assert_allclose(
        steps["stored_var_c"], 0.75 + 0.25 * steps["var_c"], rtol=1e-12, atol=1e-14
    )


def test_batch_norm_by_hand() -> None:
    """A batch of x = -1 and 3 normalises to -1 and 1 (mean 1, variance 4, no epsilon)."""
    one = np.ones((1, 1))
    w: dict[str, Array] = {f"{kind}_{k}": one for k in "FIOA" for kind in "WU"}
    w |= {f"gamma_{s}": np.array([0.1]) for s in [f"{a}_{k}" for a in "hx" for k in "FIOA"] + ["c"]}
    w |= {f"b_{k}": np.zeros(1) for k in "IOA"} | {"b_F": np.ones(1), "beta_c": np.zeros(1)}
    x = np.array([[[-1.0], [3.0]]])
    h, _, steps = normalised.lstm_batch_norm(w, x, eps=1e-30)
    assert steps["f"][0, :, 0] == pytest.approx([sigma(0.9), sigma(1.1)])
    assert steps["c"][0, :, 0] == pytest.approx(
        [sigma(-0.1) * math.tanh(-0.1), sigma(0.1) * math.tanh(0.1)]
    )
    assert h[0, :, 0] == pytest.approx([sigma(-0.1) * math.tanh(-0.1), sigma(0.1) * math.tanh(0.1)])


def test_batch_norm_with_its_own_statistics_stored_repeats_training() -> None:
    w = batch_norm_weights(3, 4)
    x = np.random.default_rng(3).standard_normal((5, 6, 3))
    trained, _, steps = normalised.lstm_batch_norm(w, x, momentum=1.0)
    stored = {k.removeprefix("stored_"): v for k, v in steps.items() if k.startswith("stored_")}
    evaluated, _, _ = normalised.lstm_batch_norm(w, x, training=False, stored=stored)
    np.testing.assert_allclose(trained, evaluated, rtol=1e-13, atol=1e-14)
    one, _, _ = normalised.lstm_batch_norm(w, x[:, 2:3], training=False, stored=stored)
    np.testing.assert_allclose(one[:, 0], evaluated[:, 2], rtol=1e-13, atol=1e-14)


def test_batch_norm_uses_the_last_stored_step_beyond_it() -> None:
    w = batch_norm_weights(3, 4)
    x = np.random.default_rng(3).standard_normal((9, 6, 3))
    _, _, steps = normalised.lstm_batch_norm(w, x[:4], momentum=1.0)
    stored = {k.removeprefix("stored_"): v for k, v in steps.items() if k.startswith("stored_")}
    longer = {k: np.concatenate([v, np.repeat(v[-1:], 5, axis=0)]) for k, v in stored.items()}
    short, _, used = normalised.lstm_batch_norm(w, x, training=False, stored=stored)
    long, _, _ = normalised.lstm_batch_norm(w, x, training=False, stored=longer)
    np.testing.assert_array_equal(short, long)
    np.testing.assert_array_equal(used["mean_c"][8], stored["mean_c"][3])
    _, _, again = normalised.lstm_batch_norm(w, x, stored=stored)
    assert again["stored_mean_c"].shape == (4, 4)


def test_batch_norm_needs_statistics_to_evaluate() -> None:
    with pytest.raises(ValueError, match="needs stored statistics"):
        normalised.lstm_batch_norm(batch_norm_weights(2, 2), np.zeros((2, 2, 2)), training=False)


def test_zoneout_limits() -> None:
    w, x = draw(LSTM, 3, 4), sequence(6, 3)
    zeros, ones = np.zeros((6, 4)), np.ones((6, 4))
    h, _, _ = normalised.zoneout(w, x, d_c=zeros, d_h=zeros)
    np.testing.assert_allclose(h, lstm_by_hand(w, x), rtol=1e-12, atol=1e-14)
    start = {"h": np.arange(4.0), "c": -np.arange(4.0)}
    _, kept, _ = normalised.zoneout(w, x, d_c=ones, d_h=ones, state=start)
    np.testing.assert_array_equal(kept["h"], start["h"])
    np.testing.assert_array_equal(kept["c"], start["c"])


def test_zoneout_hidden_state_reads_the_cell_before_zoneout() -> None:
    w, x = draw(LSTM, 3, 4), sequence(1, 3)
    h, state, _ = normalised.zoneout(w, x, d_c=np.ones((1, 4)), d_h=np.zeros((1, 4)))
    np.testing.assert_allclose(h, lstm_by_hand(w, x), rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(state["c"], np.zeros(4))


def test_zoneout_outside_training_is_the_expectation_over_one_step() -> None:
    w, x = draw(LSTM, 3, 1), sequence(1, 3)
    start = {"h": np.array([0.3]), "c": np.array([-0.4])}
    mean = {"h": np.zeros(1), "c": np.zeros(1)}
    for d, weight_c, weight_h in ((0.0, 0.7, 0.8), (1.0, 0.3, 0.2)):
        mask = np.full((1, 1), d)
        _, state, _ = normalised.zoneout(w, x, d_c=mask, d_h=mask, state=start)
        mean["c"] += weight_c * state["c"]
        mean["h"] += weight_h * state["h"]
    _, state, _ = normalised.zoneout(w, x, training=False, z_c=0.3, z_h=0.2, state=start)
    assert state["c"] == pytest.approx(mean["c"])
    assert state["h"] == pytest.approx(mean["h"])


def test_recurrent_dropout_limits() -> None:
    w, x = draw(LSTM, 3, 4), sequence(6, 3)
    h, _, _ = normalised.recurrent_dropout(w, x, mask=np.ones(4))
    np.testing.assert_allclose(h, lstm_by_hand(w, x), rtol=1e-12, atol=1e-14)
    start = {"h": np.zeros(4), "c": np.ones(4)}
    _, _, steps = normalised.recurrent_dropout(w, x, mask=np.zeros((6, 4)), state=start)
    np.testing.assert_allclose(steps["c"], np.cumprod(steps["f"], axis=0), rtol=1e-13, atol=1e-14)


def test_recurrent_dropout_inverted_moves_the_factor() -> None:
    w, x = draw(LSTM, 3, 4), sequence(6, 3)
    evaluated, _, _ = normalised.recurrent_dropout(w, x, training=False, p=0.25)
    scaled, _, _ = normalised.recurrent_dropout(w, x, mask=np.full(4, 0.75))
    np.testing.assert_array_equal(evaluated, scaled)
    inverted, _, _ = normalised.recurrent_dropout(w, x, training=False, p=0.25, inverted=True)
    np.testing.assert_allclose(inverted, lstm_by_hand(w, x), rtol=1e-12, atol=1e-14)
    whole, _, _ = normalised.recurrent_dropout(w, x, mask=np.ones(4), p=0.5, inverted=True)
    doubled, _, _ = normalised.recurrent_dropout(w, x, mask=np.full((6, 4), 2.0))
    np.testing.assert_array_equal(whole, doubled)


# Counts


@pytest.mark.parametrize("n", [1, 3, 5])
def test_counts_are_the_sizes_of_the_weights(n: int) -> None:
    for cell in GATES:
        weights = irc_weights(cell, n, n)
        extra = {"beta_per_unit": True} if cell is irc_fastgrnn else {}
        count = getattr(counts, cell.__name__.rpartition(".")[2])
        assert sum(v.size for v in weights.values()) == count(n, n, **extra)
    for name, gates in (("ihc_lstm", "FIOA"), ("ihc_gru", "IRA")):
        weights = ihc_weights(gates, n, 4)
        assert sum(v.size for v in weights.values()) == getattr(counts, name)(n, 4)
    assert sum(v.size for v in draw(LSTM, n, 4).values()) == counts.lstm(n, 4)
    assert sum(v.size for v in batch_norm_weights(n, 4).values()) == counts.lstm_batch_norm(n, 4)


@pytest.mark.parametrize("row", counts.PUBLISHED, ids=lambda row: row.name)
def test_counts_say_which_published_numbers_the_equations_give(row: counts.Published) -> None:
    given = row.percent_from_equations == row.percent
    if row.totals is not None:
        for total, count in zip(row.totals, (row.baseline, row.simplified), strict=True):
            unit = 100_000 if total >= 1_000_000 else 10_000 if total >= 100_000 else 10
            given = given and round(count / unit) * unit == total
    assert given is row.given


def test_counts_of_the_published_numbers_that_the_equations_miss() -> None:
    assert counts.ihc_lstm(100, 800) == 490_100
    assert counts.reduction(counts.lstm(100, 800), 490_100) == pytest.approx(83.0, abs=0.05)
    gate_on_feedback = counts.ihc_lstm(100, 800) - 100 * 800 + 100 * 100
    assert gate_on_feedback == 420_100
    assert counts.reduction(counts.lstm(100, 800), gate_on_feedback) == pytest.approx(
        85.4, abs=0.05
    )
    assert counts.ihc_lstm(20, 20) == 2_820
    trained = [counts.stack(f, (400, 1150, 1150, 400)) for f in (counts.lstm, counts.ihc_lstm)]
    assert trained == [20_200_800, 16_262_700]
    as_run = counts.lstm(28, 48, biases=2) + 480, counts.lstm(28, 64, biases=2) + 640
    assert round(counts.reduction(as_run[1], as_run[0]), 2) == 37.44
    assert counts.fastgrnn(650, 650, shared=True) == 846_302 < counts.irc_fastgrnn(650, 650)
