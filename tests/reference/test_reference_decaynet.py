"""Reference checks: decaynet."""

import math

import numpy as np
import pytest

from reference import decaynet
from reference.drawn import (
    LSTM,
    Array,
    draw,
    sequence,
)


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
