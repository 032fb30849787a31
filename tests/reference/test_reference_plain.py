"""Reference checks: sru, tlstm and fastgrnn."""

import math

import numpy as np
import pytest

from reference import fastgrnn, sru, tlstm
from reference.drawn import (
    draw,
    sequence,
    sigma,
)


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
