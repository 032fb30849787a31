"""Reference checks: the rotations, eurnn and goru."""

from math import cos, pi, sin

import numpy as np
import pytest

from reference import eurnn, goru, rotations
from reference.checks import close, rng
from reference.result import random_weights


def test_fft_pairs_of_eight() -> None:
    assert rotations.fft_pairs(8) == [
        [(0, 4), (1, 5), (2, 6), (3, 7)],
        [(0, 2), (1, 3), (4, 6), (5, 7)],
        [(0, 1), (2, 3), (4, 5), (6, 7)],
    ]


def test_fft_pairs_refuse_other_sizes() -> None:
    with pytest.raises(ValueError, match="power of two, but got 6"):
        rotations.fft_pairs(6)


def test_tunable_pairs_of_five_and_six() -> None:
    assert rotations.tunable_pairs(6, 3) == [
        [(0, 1), (2, 3), (4, 5)],
        [(1, 2), (3, 4)],
        [(0, 1), (2, 3), (4, 5)],
    ]
    assert rotations.tunable_pairs(5, 2) == [[(0, 1), (2, 3)], [(1, 2), (3, 4)]]


@pytest.mark.parametrize("capacity", [None, 1, 4, 7])
def test_layers_multiply_as_printed(capacity: int | None) -> None:
    """Build every rotation as a full matrix and multiply D F_1 ... F_L."""
    size = 8
    weights = random_weights(eurnn.shapes(1, size, capacity=capacity), rng(3), scale=2.0)
    layers = rotations.layers_of(weights, size, capacity, real=False)
    W = np.diag(np.exp(1j * weights["omega"]))
    for pairs, theta, phi in layers:
        for (p, q), th, ph in zip(pairs, theta, phi, strict=True):
            R = np.eye(size, dtype=complex)
            R[p, p], R[p, q] = np.exp(1j * ph) * cos(th), -np.exp(1j * ph) * sin(th)
            R[q, p], R[q, q] = sin(th), cos(th)
            W = W @ R
    close(W @ W.conj().T, np.eye(size))

    h = rng(4).standard_normal(size) + 1j * rng(5).standard_normal(size)
    weights["b"] = np.zeros(size)
    result = eurnn.run(weights, np.zeros((1, 1)), capacity=capacity, state={"h": h})
    close(result.outputs[0], W @ h)


def test_fft_layers_mix_every_coordinate_with_every_other() -> None:
    weights = {"theta": np.full((4, 8), pi / 4)}
    layers = rotations.layers_of(weights, 16, None, real=True)
    W = np.stack([rotations.rotate(column, layers) for column in np.eye(16)], axis=1)
    close(np.abs(W), 0.25)


@pytest.mark.parametrize("capacity", [None, 4])
def test_eurnn_keeps_the_norm_for_a_thousand_steps(capacity: int | None) -> None:
    weights = random_weights(eurnn.shapes(2, 16, capacity=capacity), rng(), scale=2.0)
    weights["b"] = np.zeros(16)
    h = rng(1).standard_normal(16) + 1j * rng(2).standard_normal(16)
    result = eurnn.run(weights, np.zeros((1000, 2)), capacity=capacity, state={"h": h})
    norms = np.linalg.norm(result.outputs, axis=1)
    close(norms, np.linalg.norm(h), 1e-10)


def test_eurnn_modrelu_by_hand() -> None:
    """No rotation, one input: |z| = 5 keeps its phase and gains b; |z| = 0.5 is cut to zero."""
    weights = {name: np.zeros(shape) for name, shape in eurnn.shapes(1, 2).items()}
    weights |= {"U_re": np.array([[3.0], [0.3]]), "U_im": np.array([[4.0], [0.4]])}
    weights["b"] = np.array([-1.0, -1.0])
    h = eurnn.run(weights, np.ones((1, 1))).outputs[0]
    close(h, [(3 + 4j) / 5.01 * 4.01, 0.0])


def test_eurnn_count_for_permuted_mnist() -> None:
    """1,024 real units and a ten-way output have the "~17k" parameters of section 4.3.4."""
    count = sum(int(np.prod(s)) for s in eurnn.shapes(1, 1024, real=True).values())
    assert count + 10 * 1024 + 10 == 17_418


def test_goru_with_open_gates_only_rotates() -> None:
    weights = random_weights(goru.shapes(2, 8), rng(), scale=2.0)
    weights |= {"b_r": np.full(8, 1e4), "b_z": np.full(8, -1e4), "b": np.full(8, -0.001)}
    h = rng(1).standard_normal(8)
    result = goru.run(weights, np.zeros((1000, 2)), state={"h": h})
    norms = np.linalg.norm(result.outputs, axis=1)
    close(norms, np.linalg.norm(h), 1e-10)


def test_goru_update_gate_keeps_the_state() -> None:
    weights = random_weights(goru.shapes(2, 8), rng()) | {"b_z": np.full(8, 1e4)}
    start = {"h": rng(1).standard_normal(8)}
    result = goru.run(weights, rng(2).standard_normal((9, 2)), state=start)
    np.testing.assert_array_equal(result.state["h"], start["h"])


def test_goru_reset_gate_acts_after_the_rotation() -> None:
    weights = random_weights(goru.shapes(2, 8), rng())
    weights["b_r"] = np.where(np.arange(8) < 4, -1e4, 1e4)
    weights |= {"W_x": np.zeros((8, 2)), "b": np.full(8, -0.001)}
    start = {"h": rng(1).standard_normal(8)}
    steps = goru.run(weights, np.zeros((1, 2)), state=start).steps
    np.testing.assert_array_equal(steps["h_tilde"][0, :4], 0.0)
    close(steps["h_tilde"][0, 4:], steps["rotated"][0, 4:])
