"""Reference checks: tardis and its learning signals."""

from math import exp, log
from typing import Any

import numpy as np
import pytest

from reference import lstm, tardis
from reference.checks import close, rng
from reference.maths import sigmoid, softmax
from reference.result import Array, random_weights


def tardis_setup(cells: int = 4) -> tuple[dict[str, Array], dict[str, Any]]:
    sizes = {"cells": cells, "address_size": 2, "content_size": 3}
    weights = random_weights(tardis.shapes(2, 6, **sizes, attention_size=5), rng())
    return weights, {"state": tardis.initial_state(6, cells=cells, content_size=3)}


def test_tardis_fills_in_order_then_writes_where_it_read() -> None:
    weights, options = tardis_setup()
    xi = rng(2).gumbel(size=(30, 4))
    steps = tardis.run(weights, rng(1).standard_normal((30, 2)), xi=xi, **options).steps
    np.testing.assert_array_equal(steps["write"][:4], [0, 1, 2, 3])
    np.testing.assert_array_equal(steps["write"][4:], steps["read"][4:])
    for t in range(30):
        close(steps["C"][t, steps["write"][t]], weights["W_m"] @ steps["h"][t] + weights["b_m"])


def test_tardis_reads_the_micro_state_of_the_last_writer() -> None:
    """The wormhole: r_t is an address and the projection of one old hidden state."""
    weights, options = tardis_setup()
    xi = rng(2).gumbel(size=(30, 4))
    steps = tardis.run(weights, rng(1).standard_normal((30, 2)), xi=xi, **options).steps
    writer: dict[int, int] = {}
    for t in range(30):
        cell = int(steps["read"][t])
        np.testing.assert_array_equal(steps["r"][t, :2], weights["A"][cell])
        micro = np.zeros(3)
        if cell in writer:
            micro = weights["W_m"] @ steps["h"][writer[cell]] + weights["b_m"]
        close(steps["r"][t, 2:], micro)
        writer[int(steps["write"][t])] = t


def test_tardis_does_not_read_a_cell_twice_running() -> None:
    weights, options = tardis_setup(cells=2)
    x = rng(1).standard_normal((20, 2))
    read = tardis.run(weights, x, **options).steps["read"]
    assert np.all(read[1:] != read[:-1])  # with two cells: strict alternation
    free = tardis.run(weights, x, penalty=0.0, **options).steps
    penalised = tardis.run(weights, x, **options, read_index=free["read"]).steps
    for t in range(1, 20):
        drop = np.zeros(2)
        drop[free["read"][t - 1]] = 100.0
        close(free["pi"][t] - penalised["pi"][t], drop, 1e-10)


def test_tardis_usage() -> None:
    weights, options = tardis_setup()
    result = tardis.run(weights, rng(1).standard_normal((12, 2)), **options)
    steps = result.steps
    np.testing.assert_array_equal(steps["u"][0], 0.0)
    counts = np.bincount(steps["read"][:11], minlength=4)
    expected = (counts - counts.mean()) / np.sqrt(counts.var() + 1e-5)
    close(steps["u"][11], expected)
    assert result.state["usage"].sum() == 12


def test_tardis_gumbel_weights() -> None:
    weights, options = tardis_setup()
    xi = rng(2).gumbel(size=(12, 4))
    steps = tardis.run(weights, rng(1).standard_normal((12, 2)), xi=xi, **options).steps
    h = np.concatenate([np.zeros((1, 6)), steps["h"][:-1]])
    for t in range(12):
        tau = 1 + log(1 + exp(weights["w_tau"] @ h[t] + weights["b_tau"]))
        close(steps["tau"][t], tau)
        close(steps["w_bar"][t], softmax((steps["pi"][t] + xi[t]) * tau))
        assert steps["read"][t] == np.argmax(steps["pi"][t] + xi[t])
        np.testing.assert_array_equal(steps["w"][t], np.eye(4)[steps["read"][t]])


def test_gumbel_max_samples_the_softmax() -> None:
    """Why nothing need be drawn a second time: reads at step 1 follow softmax(pi)."""
    weights, options = tardis_setup()
    x = rng(1).standard_normal((1, 2))
    p = tardis.run(weights, x, **options).steps["w_bar"][0]
    draws = rng(3).gumbel(size=(4000, 1, 4))
    reads = [tardis.run(weights, x, xi=xi, **options).steps["read"][0] for xi in draws]
    close(np.bincount(reads, minlength=4) / 4000, p, 0.03)


def test_tardis_reset_gates() -> None:
    """Large noise opens or shuts the gates; open gates are no gates."""
    weights, options = tardis_setup()
    x = rng(1).standard_normal((10, 2))
    open_gates = tardis.run(weights, x, gate_noise=np.full((10, 2), 1e4), **options)
    none = tardis.run(weights, x, reset_gates=False, **options)
    np.testing.assert_array_equal(open_gates.outputs, none.outputs)
    noise = np.tile([-1e4, 1e4], (10, 1))
    shut = tardis.run(weights, x, gate_noise=noise, **options).outputs
    cut = tardis.run(
        weights | {"W_c_h": np.zeros((6, 6))}, x, gate_noise=np.full((10, 2), 1e4), **options
    ).outputs
    np.testing.assert_array_equal(shut, cut)  # alpha is the gate of h_{t-1}
    steps = tardis.run(weights, x[:1], **options).steps
    logit = weights["w_alpha_x"] @ x[0] + weights["w_alpha_r"] @ steps["r"][0]
    close(steps["alpha"][0], sigmoid((logit + weights["b_alpha"]) / 0.3))


def test_tardis_without_memory_is_an_lstm() -> None:
    weights, options = tardis_setup()
    for gate in "fioc":
        weights[f"W_{gate}_r"] = np.zeros_like(weights[f"W_{gate}_r"])
    plain = {f"b_{g}": weights[f"b_{g}"] for g in "fioc"}
    plain |= {f"W_{s}{g}": weights[f"W_{g}_{s}"] for g in "fioc" for s in "xh"}
    x = rng(1).standard_normal((15, 2))
    close(tardis.run(weights, x, reset_gates=False, **options).outputs, lstm.run(plain, x).outputs)


def test_tardis_given_reads_and_their_log_probabilities() -> None:
    weights, options = tardis_setup()
    reads = np.array([3, 0, 2, 1, 0, 3])
    steps = tardis.run(weights, rng(1).standard_normal((6, 2)), read_index=reads, **options).steps
    np.testing.assert_array_equal(steps["read"], reads)
    for t in range(6):
        p = softmax(steps["pi"][t])[reads[t]]
        close(steps["log_prob"][t], log(p))


def test_discounted_return_by_hand() -> None:
    centred = np.array([[1.0, -2.0, 4.0]])
    close(tardis.discounted_return(centred, 0.5), [[1.0 - 1.0 + 1.0, -2.0 + 2.0, 4.0]])


def test_learning_signal_by_hand() -> None:
    rewards = np.array([[10.0, 0.0], [30.0, 0.0]])
    signal, baseline, variance = tardis.learning_signal(rewards, np.array([20.0, 0.0]), 0.0, 0.5)
    close(baseline, [20.0, 0.0])
    assert variance == pytest.approx(0.1 * 50.0)  # entries -10, 0, 10, 0
    close(signal, np.array([[-10.0, 0.0], [10.0, 0.0]]) / 5**0.5)
    small, _, v = tardis.learning_signal(rewards / 100, np.array([0.2, 0.0]), 0.0, 0.5)
    assert v < 1
    close(small, [[-0.1, 0.0], [0.1, 0.0]])  # the floor of one


def test_reinforce_loss_gradient_is_the_signal() -> None:
    log_probs, signal = -rng(1).random((3, 4)), rng(2).standard_normal((3, 4))
    bumped = log_probs.copy()
    bumped[1, 2] += 1.0
    change = tardis.reinforce_loss(bumped, signal) - tardis.reinforce_loss(log_probs, signal)
    assert change == pytest.approx(-signal[1, 2] / 3)


def test_auxiliary_reward_and_prediction() -> None:
    shapes = {"W_o_r": (7, 5), "W_o_x": (7, 2), "W_g_h": (4, 6), "W_g_r": (4, 5), "b_g": (4,)}
    weights = random_weights(shapes | {"W_o": (7, 4), "b_o": (7,)}, rng())
    r, x, h = rng(1).random((3, 5)), rng(2).random((3, 2)), rng(3).random((3, 6))
    everything = [tardis.auxiliary_reward(weights, r, x, np.full(3, y)) for y in range(7)]
    close(np.exp(everything).sum(axis=0), 1.0)
    flat = weights | {"W_o_r": np.zeros((7, 5)), "W_o_x": np.zeros((7, 2))}
    close(tardis.auxiliary_reward(flat, r, x, np.arange(3)), -log(7))
    o = np.stack([tardis.predict(weights, h_t, r_t) for h_t, r_t in zip(h, r, strict=True)])
    close(o.sum(axis=1), 1.0)
    close(tardis.log_likelihood(o, np.array([2, 0, 6])), np.log(o[[0, 1, 2], [2, 0, 6]]))
