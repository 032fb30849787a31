"""Hessian eigenvalues by Lanczos against the dense Hessian."""

import pytest
import torch
from torch import nn

from attractor.dynamics import hessian_eigenvalues, step_condition
from attractor.errors import InputError


def network() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)).double()
    return model, torch.randn(20, 3).double(), torch.randn(20, 2).double()


def dense(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    names = [name for name, _ in model.named_parameters()]
    shapes = [p.shape for p in model.parameters()]

    def loss(flat: torch.Tensor) -> torch.Tensor:
        pieces = torch.split(flat, [shape.numel() for shape in shapes])
        own = {n: p.reshape(s) for n, p, s in zip(names, pieces, shapes, strict=True)}
        answer: torch.Tensor = torch.func.functional_call(model, own, (x,))
        return ((answer - y) ** 2).mean()

    flat = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    hessian: torch.Tensor = torch.func.jacrev(torch.func.jacrev(loss))(flat)
    return hessian


def test_the_leading_eigenvalues_are_those_of_the_dense_hessian() -> None:
    model, x, y = network()
    found = hessian_eigenvalues(lambda: ((model(x) - y) ** 2).mean(), model, 6)
    exact = torch.linalg.eigvalsh(dense(model, x, y))
    exact = exact[exact.abs().argsort(descending=True)][:6]
    torch.testing.assert_close(found.values, exact, atol=1e-7, rtol=1e-6)
    assert float(found.residuals.max()) < 1e-6
    assert all(p.grad is None for p in model.parameters())


def test_few_iterations_say_how_far_off_they_are() -> None:
    model, x, y = network()
    found = hessian_eigenvalues(lambda: ((model(x) - y) ** 2).mean(), model, 1, iterations=4)
    exact = torch.linalg.eigvalsh(dense(model, x, y))
    off = (exact - found.values[0]).abs().min()
    assert 1e-8 < float(off) <= float(found.residuals[0])


def test_the_step_condition() -> None:
    model, x, y = network()
    before = [p.clone() for p in model.parameters()]

    def loss() -> torch.Tensor:
        error: torch.Tensor = model(x) - y
        return (error**2).mean()

    told = step_condition(loss, model, 1e-3)
    assert told.predicted == pytest.approx(told.actual, rel=1e-4)
    assert told.first_order < 0 < told.second_order
    g = torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss(), list(model.parameters()))])
    H = dense(model, x, y)
    assert told.largest_rate == pytest.approx(float(2 * g @ g / (g @ H @ g)))
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_frozen_parameters_are_said() -> None:
    with pytest.raises(InputError, match="ask for a gradient"):
        hessian_eigenvalues(lambda: torch.zeros(()), nn.Linear(1, 1).requires_grad_(False))


def test_a_linear_loss_has_no_curvature() -> None:
    w = nn.Parameter(torch.ones(3))
    assert hessian_eigenvalues(lambda: (2 * w).sum(), [w], 2).values.abs().max() == 0
