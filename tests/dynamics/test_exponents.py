"""Lyapunov exponents and long Jacobians against known values."""

import math

import pytest
import torch
from torch import nn

from attractor.dynamics import (
    henon,
    logistic,
    long_term_jacobian,
    lyapunov_exponents,
    tent,
)
from attractor.errors import InputError


def test_the_logistic_map_at_four() -> None:
    assert float(lyapunov_exponents(lambda x: 4 * x * (1 - x), x0=0.3)) == pytest.approx(
        math.log(2), rel=0.01
    )


def test_the_tent_map_stretches_by_its_slope() -> None:
    assert float(lyapunov_exponents(tent(1.7), x0=0.3)) == pytest.approx(math.log(1.7), abs=1e-12)


def test_the_logistic_map_in_its_cycle_of_two() -> None:
    r = 3.2
    exact = math.log(abs(4 + 2 * r - r * r)) / 2
    assert float(lyapunov_exponents(logistic(r), x0=0.3, steps=2000)) == pytest.approx(
        exact, rel=1e-6
    )


def test_henon() -> None:
    found = lyapunov_exponents(henon(), torch.tensor([0.1, 0.1], dtype=torch.float64), steps=20_000)
    assert float(found.values[0]) == pytest.approx(0.4192, rel=0.01)
    assert float(found.values.sum()) == pytest.approx(math.log(0.3), abs=1e-9)


def test_a_linear_map_has_the_logarithms_of_its_eigenvalues() -> None:
    A = torch.tensor([[0.5, 1.0, 0.0], [0.0, -1.25, 2.0], [0.0, 0.0, 0.1]], dtype=torch.float64)
    x0 = torch.zeros(3, dtype=torch.float64)
    found = lyapunov_exponents(lambda x: A @ x, x0, steps=3000)
    exact = [math.log(1.25), math.log(0.5), math.log(0.1)]
    assert found.values.tolist() == pytest.approx(exact, abs=2e-3)
    assert lyapunov_exponents(lambda x: A @ x, x0, steps=3000, count=1).values.tolist() == (
        pytest.approx(exact[:1], abs=2e-3)
    )


def test_a_batch_of_starts() -> None:
    x0 = torch.tensor([[0.1, 0.1], [0.2, -0.1]], dtype=torch.float64)
    found = lyapunov_exponents(henon(), x0, steps=500, batched=True)
    assert found.values.shape == (2, 2)
    alone = lyapunov_exponents(henon(), x0[1], steps=500)
    torch.testing.assert_close(found.values[1], alone.values)


def test_a_network_that_contracts_has_negative_exponents() -> None:
    torch.manual_seed(0)
    found = lyapunov_exponents(nn.GRU(1, 4), steps=200, discard=50)
    assert found.values.shape == (4,)
    assert float(found) < 0


def test_an_orbit_that_leaves_is_said() -> None:
    with pytest.raises(InputError, match="stays finite"):
        lyapunov_exponents(lambda x: x**2, x0=2.0)


def test_the_long_jacobian_is_the_product_by_hand() -> None:
    torch.manual_seed(0)
    model, x = nn.RNN(2, 3), torch.randn(5, 2)
    found = long_term_jacobian(model, x)
    own = {name: value.detach().double() for name, value in model.named_parameters()}
    W, U, b = own["weight_hh_l0"], own["weight_ih_l0"], own["bias_ih_l0"] + own["bias_hh_l0"]
    h, product = torch.zeros(3).double(), torch.eye(3).double()
    for step, now in enumerate(x.double()):
        h = torch.tanh(W @ h + U @ now + b)
        product = torch.diag(1 - h**2) @ W @ product
        torch.testing.assert_close(found.singular_values[step], torch.linalg.svdvals(product))
    torch.testing.assert_close(found.final, product)
    assert found.rates[4].item() == pytest.approx(found.singular_values[4, 0].item() ** 0.2)


def test_the_bound_of_pascanu_holds() -> None:
    torch.manual_seed(0)
    model = nn.RNN(2, 5)
    found = long_term_jacobian(model, torch.randn(30, 2))
    eta = torch.linalg.matrix_norm(
        dict(model.named_parameters())["weight_hh_l0"].detach().double(), 2
    )
    n = torch.arange(1, 31)
    assert bool((found.singular_values[:, 0] <= eta**n * (1 + 1e-9)).all())


def test_the_long_jacobian_needs_one_sequence() -> None:
    with pytest.raises(InputError, match="one sequence"):
        long_term_jacobian(nn.RNN(2, 3), torch.zeros(5, 1, 2))
