"""Reference checks: learned optimisers."""

import math
from typing import Any

import numpy as np
import pytest

from reference import counts, rules
from reference.checks import close, rng


def lstm_layer(n: int, m: int, seed: int, scale: float = 0.5) -> dict[str, Any]:
    g = rng(seed)
    weights = {}
    for k in "ifoc":
        weights[f"W_x{k}"] = scale * g.standard_normal((m, n))
        weights[f"W_h{k}"] = scale * g.standard_normal((m, m))
        weights[f"b_{k}"] = scale * g.standard_normal(m)
    return weights


def test_preprocessed_by_hand() -> None:
    e = math.exp
    g = np.array([1.0, -e(5), e(-10), e(-10) * 0.5, -e(-12), 0.0, -1e-300])
    expected = [(0, 1), (0.5, -1), (-1, 1), (-1, 0.5), (-1, -e(-2)), (-1, 0), (-1, -e(10) * 1e-300)]
    close(rules.preprocess(g), expected)


def test_lstm_optimiser_by_hand() -> None:
    """One unit, all weights zero but the candidate's bias: the cell fills by tanh(1)/2 a step."""
    layer: dict[str, Any] = {f"{w}{k}": np.zeros((1, 1)) for k in "ifoc" for w in ("W_x", "W_h")}
    layer |= {f"b_{k}": np.zeros(1) for k in "ifo"} | {"b_c": np.ones(1)}
    weights = {"layers": [layer], "w": np.array([2.0]), "b": 0.3}
    layer["W_xi"] = layer["W_xf"] = layer["W_xo"] = layer["W_xc"] = np.zeros((1, 2))
    theta, state = rules.lstm_optimiser(weights, np.array([5.0]), np.array([0.7]))
    c = 0.5 * math.tanh(1)
    assert theta[0] == pytest.approx(5 + 0.1 * (2 * 0.5 * math.tanh(c) + 0.3))
    theta, _ = rules.lstm_optimiser(weights, theta, np.array([-3.0]), state)
    c2 = 0.5 * c + 0.5 * math.tanh(1)
    assert theta[0] == pytest.approx(5 + 0.1 * (math.tanh(c) + math.tanh(c2) + 0.6))


def test_a_coordinate_does_not_see_the_others() -> None:
    weights = {
        "layers": [lstm_layer(2, 3, 0), lstm_layer(3, 3, 1)],
        "w": rng(2).standard_normal(3),
        "b": 0.1,
    }
    theta, g = rng(3).standard_normal(4), rng(4).standard_normal(4)
    together, _ = rules.lstm_optimiser(weights, theta, g)
    for n in range(4):
        alone, _ = rules.lstm_optimiser(weights, theta[n : n + 1], g[n : n + 1])
        close(together[n], alone[0])


def decaynet_layer() -> dict[str, Any]:
    layer: dict[str, Any] = {f"W_{k}": np.zeros((1, 2)) for k in "FIOA"} | {
        f"U_{k}": np.zeros((1, 1)) for k in "FIOA"
    }
    return layer | {"b_I": np.zeros(1), "b_O": np.zeros(1), "b_A": np.ones(1)}


def test_decaynet_optimiser_runs_two_steps_and_starts_its_angle_anew() -> None:
    weights = {"layers": [decaynet_layer()], "w": np.array([1.0]), "b": 0.0}
    theta, state = rules.decaynet_optimiser(weights, np.array([1.0]), np.array([2.0]))
    half = 0.5 * math.tanh(1)
    c = math.sqrt(0.5) * half + half  # the second of two steps has p = pi/4
    assert theta[0] == pytest.approx(1 - 0.5 * math.tanh(c) * 2)
    after, _ = rules.decaynet_optimiser(weights, theta, np.array([2.0]), state)
    c = math.sin(3 * math.pi / 8) * c + half  # p is pi/2 again, minus an eighth turn
    c = math.sqrt(0.5) * c + half
    assert after[0] == pytest.approx(theta[0] - 0.5 * math.tanh(c) * 2)


def global_weights(size: int, reduced: int = 2, units: int = 3) -> dict[str, Any]:
    g = rng(5)
    square = {"W": (4, units, reduced), "U": (4, units, units)}
    weights = {name: g.standard_normal(shape) for name, shape in square.items()}
    for name in ("b", "gain_W", "shift_W", "gain_U", "shift_U"):
        weights[name] = g.standard_normal((4, units))
    return weights | {
        "down": g.standard_normal((reduced, size)),
        "up": g.standard_normal((size, units)),
    }


def test_global_optimiser_sees_only_parameters_times_gradients() -> None:
    """Appendix E: the pair of a gradient enters as a product, and a zero parameter hides it."""
    weights, theta = global_weights(3), np.array([1.0, -2.0, 0.0])
    g = np.array([0.5, -0.1, 3.0])
    moved, _ = rules.global_optimiser(weights, theta, g)
    other = np.array([0.5, -0.1, 7.0])
    moved_by_other, _ = rules.global_optimiser(weights, theta, other)
    close((moved - theta) / g, (moved_by_other - theta) / other)
    # log|g| sgn(g) = log|1/g| sgn(-1/g): the same product
    mirrored, _ = rules.global_optimiser(weights, theta, -1 / g)
    close((moved - theta) / g, (mirrored - theta) * -g)


@pytest.mark.parametrize("decays", [True, False])
def test_normalised_sums_do_not_feel_the_size_of_the_matrices(decays: bool) -> None:
    weights, theta, g = global_weights(3), rng(6).standard_normal(3), rng(7).standard_normal(3)
    _, state = rules.global_optimiser(weights, theta, g, decays=decays)
    first, _ = rules.global_optimiser(weights, theta, g, state, decays=decays)
    larger = weights | {"W": 1e6 * weights["W"], "U": 1e6 * weights["U"]}
    small = weights | {"W": 1e4 * weights["W"], "U": 1e4 * weights["U"]}
    first, _ = rules.global_optimiser(small, theta, g, state, decays=decays)
    second, _ = rules.global_optimiser(larger, theta, g, state, decays=decays)
    close(first, second, atol=1e-8)


def hypernetwork(values: Any, pixels: int = 2) -> dict[str, Any]:
    """One that says the same whatever it sees."""
    values = np.asarray(values, dtype=float)
    return {
        "W1": np.ones((1, pixels)),
        "b1": np.zeros(1),
        "W2": np.zeros((len(values), 1)),
        "b2": values,
    }


def test_mtl2l_with_the_unit_matrix_is_an_lstm_with_diagonal_weights() -> None:
    m = 3
    lift, one = rng(8).standard_normal((m, 2)), np.tile(np.eye(m), (4, 1, 1))
    d1, d2, b = (
        rng(9).standard_normal(m),
        rng(10).standard_normal(m),
        rng(11).standard_normal((4, m)),
    )
    layer: dict[str, Any] = {"Q": one, "P": one, "S": one, "J": one, "b": b}
    layer |= {"N1": hypernetwork(d1), "N2": hypernetwork(d2)}
    w = rng(12).standard_normal(m)
    weights = {"lift": lift, "layers": [layer], "w": w, "b": 0.2}
    plain = {f"W_x{k}": np.diag(d1) @ lift for k in "fioc"} | {
        f"W_h{k}": np.diag(d2) for k in "fioc"
    }
    plain |= {f"b_{k}": b[row] for row, k in enumerate("fioc")}
    images = rng(13).standard_normal((5, 2))
    theta = other = rng(14).standard_normal(4)
    state = own = None
    for step in range(3):
        g = rng(20 + step).standard_normal(4)
        theta, state = rules.mtl2l(weights, theta, g, state, images=images, stable=False)
        other, own = rules.lstm_optimiser({"layers": [plain], "w": w, "b": 0.2}, other, g, own)
        close(theta, other)


def test_stable_eigenvalues_come_slowly() -> None:
    one = np.tile(np.eye(2), (4, 1, 1))
    layer: dict[str, Any] = {"Q": one, "P": one, "S": one, "J": one, "b": np.zeros((4, 2))}
    layer |= {"N1": hypernetwork([1, -2]), "N2": hypernetwork([0, 3])}
    weights = {"lift": np.ones((2, 2)), "layers": [layer], "w": np.ones(2), "b": 0.0}
    theta, state = np.zeros(1), None
    for step in range(1, 4):
        theta, state = rules.mtl2l(
            weights, theta, np.ones(1), state, images=np.ones((3, 2)), stable=True
        )
        close(state["N"][0]["N1"], (1 - 0.9**step) * np.array([1, -2]))
        close(state["N"][0]["N2"], (1 - 0.9**step) * np.array([0, 3]))


def test_hypernetworks_are_averaged_after_their_last_layer() -> None:
    net = {"W1": np.array([[1.0]]), "b1": np.zeros(1), "W2": np.array([[2.0]]), "b2": np.ones(1)}
    layer: dict[str, Any] = dict.fromkeys("QPSJ", np.ones((4, 1, 1))) | {"b": np.zeros((4, 1))}
    layer |= {"N1": net, "N2": net}
    weights = {"lift": np.ones((1, 2)), "layers": [layer], "w": np.ones(1), "b": 0.0}
    images = np.array([[3.0], [-3.0]])  # the mean image says nothing, the images say 7 and 1
    _, state = rules.mtl2l(weights, np.zeros(1), np.ones(1), images=images, stable=False)
    assert state["N"][0]["N1"] == pytest.approx([4.0])


def test_rates_by_hand() -> None:
    layer: dict[str, Any] = {
        f"{w}{k}": np.zeros((1, i)) for k in "ifoc" for w, i in (("W_x", 2), ("W_h", 1))
    }
    layer |= {f"b_{k}": np.zeros(1) for k in "ifo"} | {"b_c": np.ones(1)}
    h = 0.5 * math.tanh(0.5 * math.tanh(1))
    weights = {"layers": [layer], "U_beta": np.array([-1.0]), "beta_sta": np.array([0.1, 0.5])}
    rates = [0.0, 0.5 - math.tanh(h)]
    theta, g = np.array([1.0, 1.0]), np.array([2.0, 3.0])
    found, _ = rules.dmsgd(weights, theta, g)
    close(found, theta - np.array(rates) * g)
    at_zero, _ = rules.m2sgd(weights, theta, g, threshold=0.0)
    close(at_zero, [0, 1 - rates[1] * 3])  # no rate, no weight
    equal = rules.dmsgd_rates(weights, g, None)[0][1]
    close(rules.m2sgd(weights, theta, g, threshold=equal)[0], [0, 0])  # sgn(0) = 0
    close(rules.meta_sgd({"beta": np.array([0.1, 0.2])}, theta, g)[0], [0.8, 0.4])


def test_published_counts_of_a_layer_of_twenty() -> None:
    assert counts.lstm(20, 20) == 3_280
    assert counts.ihc_lstm(20, 20) == 2_820
