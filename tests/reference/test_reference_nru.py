"""Reference checks: nru."""

import numpy as np
import pytest

from reference import nru
from reference.checks import close, rng
from reference.result import random_weights


@pytest.mark.parametrize("relu_heads", [False, True])
def test_nru_directions_have_unit_l5_norm(relu_heads: bool) -> None:
    weights = random_weights(nru.shapes(3, 6, memory_size=16, heads=4), rng())
    x = rng(1).standard_normal((20, 3))
    steps = nru.run(weights, x, relu_heads=relu_heads, average_heads=True).steps
    for name in ("v_w", "v_e"):
        norms = np.sum(np.abs(steps[name]) ** 5, axis=-1) ** 0.2
        assert np.all((np.abs(norms - 1) < 1e-12) | (norms == 0))  # a ReLU may empty a direction
        assert np.any(norms > 0)


def test_nru_directions_by_hand() -> None:
    """Two heads over eight cells: the outer product is cut into two blocks of two rows each."""
    p, q = np.array([1.0, 2.0, 0.0, -1.0]), np.array([1.0, 0.0, 0.0, 2.0])
    v = nru.directions(p, q, 2, relu_heads=False, eps=1e-12)
    first = np.array([1.0, 0.0, 0.0, 2.0, 2.0, 0.0, 0.0, 4.0])
    second = np.array([0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, -2.0])
    close(v[0], first / (1 + 32 + 32 + 1024) ** 0.2)
    close(v[1], second / 33**0.2)
    np.testing.assert_array_equal(
        nru.directions(p, q, 2, relu_heads=True, eps=1e-12)[1], np.zeros(8)
    )


def test_nru_memory_adds_up() -> None:
    """Unrolled, (4.2) is the sum of everything written less the sum of everything erased."""
    weights = random_weights(nru.shapes(3, 6, memory_size=16, heads=4), rng(), scale=0.2)
    result = nru.run(weights, rng(1).standard_normal((7, 3)))
    steps = result.steps
    written = np.einsum("tk,tkm->m", steps["alpha"], steps["v_w"])
    erased = np.einsum("tk,tkm->m", steps["beta"], steps["v_e"])
    close(result.state["m"], written - erased)


def test_nru_average_is_a_quarter_of_the_sum() -> None:
    weights = random_weights(nru.shapes(3, 6, memory_size=16, heads=4), rng(), scale=0.2)
    x = rng(1).standard_normal((1, 3))
    summed, averaged = nru.run(weights, x), nru.run(weights, x, average_heads=True)
    close(averaged.state["m"], summed.state["m"] / 4)


def test_nru_heads_without_input_are_heads_with_zero_input_weights() -> None:
    weights = random_weights(nru.shapes(3, 6, memory_size=16, heads=4), rng(), scale=0.2)
    x = rng(1).standard_normal((7, 3))
    silenced = {n: np.zeros_like(w) if n.endswith("_x") else w for n, w in weights.items()}
    np.testing.assert_array_equal(
        nru.run(weights, x, heads_read_input=False).outputs, nru.run(silenced, x).outputs
    )


def test_nru_multiplicative_erase_can_empty_the_memory() -> None:
    """One head over one cell: v = +-1, so beta = 1 erases all of m and nothing else is left."""
    weights = {n: np.zeros(s) for n, s in nru.shapes(1, 1, memory_size=1, heads=1).items()}
    weights |= {f"b_{g}": np.ones(1) for g in ("beta", "pw", "qw", "pe", "qe")}
    start = {"h": np.zeros(1), "m": np.array([5.0])}
    x = np.zeros((1, 1))
    assert nru.run(weights, x, multiplicative=True, state=start).state["m"] == 0.0
    assert nru.run(weights, x, state=start).state["m"] == 4.0


def test_nru_count_for_the_copy_task() -> None:
    """10 inputs, 9 outputs, heads on (h, m): the 23,569 parameters of the author's copy run."""
    shapes = nru.shapes(10, 80, memory_size=64, heads=4, heads_read_input=False)
    assert sum(int(np.prod(s)) for s in shapes.values()) + 9 * 80 + 9 == 23_569


def test_nru_needs_a_square() -> None:
    with pytest.raises(ValueError, match=r"4 \* 65 = 260. Try memory_size=64"):
        nru.shapes(3, 5, memory_size=65, heads=4)
