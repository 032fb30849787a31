"""Reference checks: ntm and dntm."""

from math import exp, log
from typing import Any

import numpy as np
import pytest

from reference import dntm, ntm
from reference.checks import close, rng
from reference.maths import cosine, softmax, softplus
from reference.result import Array, random_weights


def ntm_setup(controller: str = "lstm", heads: int = 2) -> tuple[dict[str, Array], dict[str, Any]]:
    sizes = {"cell_size": 3, "read_heads": heads, "write_heads": heads}
    weights = random_weights(ntm.shapes(2, 5, **sizes, controller=controller), rng())
    state = ntm.initial_state(5, cells=6, **sizes)
    return weights, {"state": state, "controller": controller}


@pytest.mark.parametrize("controller", ["lstm", "ff"])
def test_ntm_weights_sum_to_one(controller: str) -> None:
    weights, options = ntm_setup(controller)
    steps = ntm.run(weights, rng(1).standard_normal((40, 2)), **options).steps
    for name in ("w_r", "w_w", "w_c_r", "w_g_r", "w_tilde_r"):
        assert np.all(steps[name] >= 0)
        close(steps[name].sum(axis=-1), 1.0)


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_ntm_head_walks_round_the_memory(shift: int) -> None:
    """Gate shut and shift sharp: pure location addressing moves by ``shift`` at each step."""
    weights, options = ntm_setup(heads=1)
    for head in ("r0", "w0"):
        for name in ("g", "s"):
            for side in ("x", "h"):
                key = f"W_{side}{name}_{head}"
                weights[key] = np.zeros_like(weights[key])
        weights[f"b_g_{head}"] = np.array([-1e4])
        weights[f"b_s_{head}"] = np.where(np.arange(3) == shift + 1, 0.0, -1e4)
    steps = ntm.run(weights, rng(1).standard_normal((8, 2)), **options).steps
    expected = np.stack([np.eye(6)[(shift * (t + 1)) % 6] for t in range(8)])
    close(steps["w_r"][:, 0], expected)
    close(steps["w_w"][:, 0], expected)


def test_ntm_shift_and_sharpening_by_hand() -> None:
    """Shift weights (.2, .5, .3) from cell 0 give (.5, .3, 0, .2); gamma = 2 squares them."""
    weights = {n: np.zeros(s) for n, s in ntm.shapes(1, 1, cell_size=1).items()}
    weights |= {"b_g_r0": np.array([-1e4]), "b_s_r0": np.log([0.2, 0.5, 0.3])}
    weights["b_gamma_r0"] = np.array([log(exp(1.0) - 1)])  # softplus of this is one
    state = ntm.initial_state(1, cells=4, cell_size=1)
    steps = ntm.run(weights, np.zeros((1, 1)), state=state).steps
    close(steps["w_tilde_r"][0, 0], [0.5, 0.3, 0.0, 0.2])
    close(steps["w_r"][0, 0], np.array([0.25, 0.09, 0.0, 0.04]) / 0.38)


def test_ntm_full_erase_then_read_returns_what_was_added() -> None:
    """Sharp heads fixed on cell 0 with e = 1: the next read is exactly a."""
    weights, options = ntm_setup(heads=1)
    for head in ("r0", "w0"):
        for name in ("g", "s"):
            for side in ("x", "h"):
                key = f"W_{side}{name}_{head}"
                weights[key] = np.zeros_like(weights[key])
        weights[f"b_g_{head}"] = np.array([-1e4])
        weights[f"b_s_{head}"] = np.array([-1e4, 0.0, -1e4])
    weights["b_e_w0"] = np.full(3, 1e4)
    x = rng(1).standard_normal((5, 2))
    steps = ntm.run(weights, x, **options).steps
    for t in range(4):
        h = steps["h"][t]
        a = weights["W_xa_w0"] @ x[t] + weights["W_ha_w0"] @ h + weights["b_a_w0"]
        close(steps["r"][t + 1, 0], a)


def test_ntm_equal_cells_and_uniform_weights_never_part() -> None:
    """Why the heads start on cell 0."""
    weights, options = ntm_setup()
    state = options["state"]
    uniform = {"w_r": np.full((2, 6), 1 / 6), "w_w": np.full((2, 6), 1 / 6)}
    steps = ntm.run(weights, rng(1).standard_normal((9, 2)), state=state | uniform).steps
    close(steps["M"] - steps["M"][:, :1], 0.0)


def test_ntm_write_heads_erase_before_any_of_them_adds() -> None:
    """Two sharp write heads on one cell: M = 0 * M + a_1 + a_2, whatever their order."""
    weights, options = ntm_setup(heads=2)
    for head in ("w0", "w1"):
        for name in ("g", "s", "e"):
            for side in ("x", "h"):
                key = f"W_{side}{name}_{head}"
                weights[key] = np.zeros_like(weights[key])
        weights[f"b_g_{head}"] = np.array([-1e4])
        weights[f"b_s_{head}"] = np.array([-1e4, 0.0, -1e4])
        weights[f"b_e_{head}"] = np.full(3, 1e4)
    x = rng(1).standard_normal((1, 2))
    steps = ntm.run(weights, x, **options).steps
    total = np.zeros(3)
    for head in ("w0", "w1"):
        total += weights[f"W_xa_{head}"] @ x[0] + weights[f"b_a_{head}"]
        total += weights[f"W_ha_{head}"] @ steps["h"][0]
    close(steps["M"][0, 0], total)


def dntm_setup(controller: str = "gru") -> tuple[dict[str, Array], dict[str, Any]]:
    sizes = {"cells": 5, "address_size": 2, "content_size": 3}
    weights = random_weights(dntm.shapes(2, 4, **sizes, controller=controller), rng())
    return weights, {"state": dntm.initial_state(4, cells=5, content_size=3)}


def test_dntm_moving_average_and_softmax() -> None:
    weights, options = dntm_setup()
    x = rng(1).standard_normal((10, 2))
    steps = dntm.run(weights, x, **options).steps
    for head in ("r", "w"):
        z, v = steps[f"z_{head}"], steps[f"v_{head}"]
        for t in range(10):
            average = sum(0.9 * 0.1 ** (t - j) * z[j] for j in range(t + 1))
            close(v[t], average)
        close(steps[f"w_{head}"].sum(axis=1), 1.0)
    close(steps["w_r"][0], softmax(steps["z_r"][0]))


def test_dntm_shut_lru_gate_is_content_addressing() -> None:
    weights, options = dntm_setup()
    for head in ("r", "w"):
        weights[f"b_gamma_{head}"] = np.array([-1e4])
    steps = dntm.run(weights, rng(1).standard_normal((6, 2)), **options).steps
    for t in range(6):
        close(steps["w_r"][t], softmax(steps["z_r"][t]))


def test_dntm_first_logits_by_hand() -> None:
    weights, options = dntm_setup()
    x = rng(1).standard_normal((1, 2))
    k = weights["W_xk_r"] @ x[0] + weights["b_k_r"]
    beta = 1 + softplus(weights["W_xbeta_r"] @ x[0] + weights["b_beta_r"])[0]
    z = [beta * cosine(k, np.concatenate([row, np.zeros(3)]), 1e-4) for row in weights["A"]]
    close(dntm.run(weights, x, **options).steps["z_r"][0], z)


def test_dntm_nop_cell_is_neither_read_nor_written() -> None:
    weights, options = dntm_setup()
    x = rng(1).standard_normal((6, 2))
    on_nop: dict[str, Any] = {
        "discrete": True,
        "read_index": np.full(6, 4),
        "write_index": np.full(6, 4),
    }
    steps = dntm.run(weights, x, **options, **on_nop).steps
    np.testing.assert_array_equal(steps["r"], 0.0)
    np.testing.assert_array_equal(steps["C"], 0.0)
    without = dntm.run(weights, x, **options, **on_nop, nop=False).steps
    assert np.abs(without["r"]).max() > 0
    assert np.abs(without["C"]).max() > 0
    continuous = dntm.run(weights, x, **options).steps
    np.testing.assert_array_equal(continuous["C"][:, 4], 0.0)


def test_dntm_discrete_reads_the_given_cell() -> None:
    weights, options = dntm_setup()
    x = rng(1).standard_normal((8, 2))
    reads, writes = rng(2).integers(0, 4, 8), rng(3).integers(0, 4, 8)
    steps = dntm.run(
        weights, x, **options, discrete=True, read_index=reads, write_index=writes
    ).steps
    content = np.concatenate([np.zeros((1, 5, 3)), steps["C"][:-1]])
    for t in range(8):
        row = np.concatenate([weights["A"][reads[t]], content[t, reads[t]]])
        np.testing.assert_array_equal(steps["r"][t], row)
        changed = np.flatnonzero(np.any(steps["C"][t] != content[t], axis=1))
        assert set(changed) <= {writes[t]}


def test_dntm_without_index_takes_the_argmax() -> None:
    weights, options = dntm_setup()
    steps = dntm.run(weights, rng(1).standard_normal((8, 2)), **options, discrete=True).steps
    for head in ("r", "w"):
        np.testing.assert_array_equal(
            np.argmax(steps[f"w_{head}"], axis=1), np.argmax(steps[f"p_{head}"], axis=1)
        )
