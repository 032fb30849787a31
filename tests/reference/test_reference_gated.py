"""Reference checks: rnn, lstm, gru, janet and stat_ru."""

from math import exp, log, tanh

import numpy as np

from reference import gru, janet, lstm, rnn, stat_ru
from reference.checks import close, rng
from reference.result import random_weights


def test_rnn_by_hand() -> None:
    weights = {"U": np.array([[2.0]]), "W": np.array([[0.5]]), "b": np.array([-1.0])}
    x = np.array([[1.0], [0.0]])
    h1 = tanh(2.0 - 1.0)
    close(rnn.run(weights, x).outputs[:, 0], [h1, tanh(0.5 * h1 - 1.0)])
    close(rnn.run(weights, x, activation="relu").outputs[:, 0], [1.0, 0.0])


def test_layer_norm_centres_scales_and_shifts() -> None:
    weights = random_weights(rnn.shapes(3, 6, layer_norm=True), rng())
    weights["gamma"], weights["beta"] = np.full(6, 2.0), np.full(6, 0.25)
    x = rng(1).standard_normal((4, 3))
    a = rnn.run(weights, x, layer_norm=True, eps=0.0).steps["a"]
    close(a.mean(axis=1), 0.25)
    close(a.std(axis=1), 2.0)
    shifted = weights | {"b": weights["b"] + 3.0}  # a common shift of the input is removed
    again = rnn.run(shifted, x, layer_norm=True, eps=0.0).steps["a"]
    close(a, again)


def test_lstm_with_saturated_gates_keeps_the_cell() -> None:
    weights = random_weights(lstm.shapes(3, 4), rng())
    weights["b_f"], weights["b_i"] = np.full(4, 1e4), np.full(4, -1e4)
    start = {"h": np.zeros(4), "c": np.array([-2.0, 0.5, 1.0, 3.0])}
    x = rng(1).standard_normal((50, 3))
    np.testing.assert_array_equal(lstm.run(weights, x, state=start).state["c"], start["c"])


def test_lstm_peepholes_by_hand() -> None:
    """All weights but the peepholes zero: i and f see the old cell, o sees the new one."""
    weights = {name: np.zeros(shape) for name, shape in lstm.shapes(1, 1, peepholes=True).items()}
    weights |= {"w_ci": np.array([1.0]), "w_cf": np.array([-1.0]), "w_co": np.array([2.0])}
    weights["b_c"] = np.array([0.5])
    start = {"h": np.zeros(1), "c": np.array([0.8])}
    i, f = 1 / (1 + exp(-0.8)), 1 / (1 + exp(0.8))
    c = f * 0.8 + i * tanh(0.5)
    h = tanh(c) / (1 + exp(-2 * c))
    result = lstm.run(weights, np.zeros((1, 1)), peepholes=True, state=start)
    close([result.state["c"][0], result.state["h"][0]], [c, h])


def test_zero_peepholes_are_no_peepholes() -> None:
    weights = random_weights(lstm.shapes(3, 4, peepholes=True), rng())
    for name in ("w_ci", "w_cf", "w_co"):
        weights[name] = np.zeros(4)
    x = rng(1).standard_normal((6, 3))
    np.testing.assert_array_equal(
        lstm.run(weights, x, peepholes=True).outputs, lstm.run(weights, x).outputs
    )


def test_chrono_bias_halves_the_cell_after_its_time_scale() -> None:
    """b_f = log(T - 1) gives f = 1 - 1/T, so the cell decays as (1 - 1/T)^n: (2.28)."""
    T = 50.0
    weights = {name: np.zeros(shape) for name, shape in lstm.shapes(1, 1).items()}
    weights |= {"b_f": np.array([log(T - 1)]), "b_i": np.array([-log(T - 1)])}
    start = {"h": np.zeros(1), "c": np.ones(1)}
    result = lstm.run(weights, np.zeros((100, 1)), state=start)
    close(result.state["c"], (1 - 1 / T) ** 100)
    close(result.steps["i"], 1 / T)


def test_gru_update_gate_admits_the_candidate() -> None:
    weights = random_weights(gru.shapes(3, 4), rng())
    x = rng(1).standard_normal((6, 3))
    start = {"h": np.array([0.1, -0.7, 0.3, 0.9])}
    shut = gru.run(weights | {"b_z": np.full(4, -1e4)}, x, state=start)
    np.testing.assert_array_equal(shut.state["h"], start["h"])
    wide = gru.run(weights | {"b_z": np.full(4, 1e4)}, x, state=start)
    np.testing.assert_array_equal(wide.outputs, wide.steps["h_tilde"])


def test_gru_reset_before_and_after_the_matrix() -> None:
    """With W_hh = I and no recurrent bias the two forms agree; otherwise they do not."""
    weights = random_weights(gru.shapes(3, 4, reset_after=True), rng())
    x = rng(1).standard_normal((6, 3))
    after = gru.run(weights, x, reset_after=True).outputs
    assert np.abs(after - gru.run(weights, x).outputs).max() > 1e-3
    weights |= {"W_hh": np.eye(4), "b_hh": np.zeros(4)}
    close(gru.run(weights, x, reset_after=True).outputs, gru.run(weights, x).outputs)


def test_janet_without_beta_is_a_gru_without_reset() -> None:
    weights = random_weights(janet.shapes(3, 4), rng())
    as_gru = {"W_xr": np.zeros((4, 3)), "W_hr": np.zeros((4, 4)), "b_r": np.full(4, 1e4)}
    for name in ("W_xf", "W_hf", "b_f"):
        as_gru[name.replace("f", "z")] = -weights[name]
    for name in ("W_xh", "W_hh", "b_h"):
        as_gru[name] = weights[name]
    x = rng(1).standard_normal((6, 3))
    close(janet.run(weights, x, beta=0.0).outputs, gru.run(as_gru, x).outputs)


def test_janet_beta_by_hand() -> None:
    weights = {name: np.zeros(shape) for name, shape in janet.shapes(1, 1).items()}
    weights["b_h"] = np.array([0.5])
    result = janet.run(weights, np.zeros((1, 1)), state={"h": np.array([0.8])})
    expected = 0.5 * 0.8 + (1 - 1 / (1 + exp(1.0))) * tanh(0.5)
    close(result.outputs[0, 0], expected)


def test_statistics_are_moving_averages() -> None:
    weights = random_weights(stat_ru.shapes(3, 4, statistics=2, recurrent=3), rng())
    x = rng(1).standard_normal((12, 3))
    steps = stat_ru.run(weights, x).steps
    for n, alpha in enumerate(stat_ru.THESIS_ALPHAS):
        for t in range(12):
            average = sum((1 - alpha) * alpha ** (t - j) * steps["m_hat"][j] for j in range(t + 1))
            close(steps["m"][t, n], average)
    np.testing.assert_array_equal(steps["m"][:, 0], steps["m_hat"])  # alpha = 0 forgets at once
