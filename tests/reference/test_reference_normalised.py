"""Reference checks: normalisers and regularisers of an LSTM."""

import math

import numpy as np
import pytest

from reference import normalised
from reference.drawn import (
    LSTM,
    Array,
    batch_norm_weights,
    draw,
    sequence,
    sigma,
)


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
