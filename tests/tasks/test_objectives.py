"""The quadratic against NumPy, Rosenbrock's function against SciPy, and what both promise."""

import numpy as np
import pytest
import scipy.optimize
import torch
from torch import Generator, Tensor
from torch.func import functional_call, grad, stack_module_state, vmap

from attractor.errors import InputError
from attractor.models import Point
from attractor.references import bibtex
from attractor.tasks import Objective, Quadratic, Rosenbrock

OBJECTIVES = [Quadratic(5), Rosenbrock(5)]
objectives = pytest.mark.parametrize("task", OBJECTIVES, ids=lambda task: type(task).__name__)


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def parts(task: Objective) -> tuple[Tensor, Tensor]:
    batch = task.batches(1, generator=seeded()).draw()
    return batch.x, batch.y


def test_a_quadratic_is_its_equation() -> None:
    task = Quadratic()
    W, y = parts(task)
    theta = torch.randn(10, generator=seeded(1))
    expected = np.sum((W.numpy() @ theta.numpy() - y.numpy()) ** 2)
    assert W.shape == (10, 10)
    assert task.value(W @ theta, y).item() == pytest.approx(expected, rel=1e-5)


def test_a_quadratic_has_the_condition_number_that_is_asked_for() -> None:
    W, y = (part.double().numpy() for part in parts(Quadratic(8, condition=1e4)))
    values = np.linalg.eigvalsh(2 * W.T @ W)
    assert values.max() / values.min() == pytest.approx(1e4, rel=1e-2)
    assert values.max() == pytest.approx(2, rel=1e-5)
    apart = np.diff(np.log10(np.sort(values)))
    assert apart == pytest.approx(np.full(7, 4 / 7), rel=1e-2)
    least = np.linalg.solve(W, y)
    assert 0.3 < np.square(least).mean() < 3  # a standard normal point, in the flat directions too
    assert not np.allclose(W, np.diag(np.diag(W)), atol=0.1)
    with pytest.raises(InputError, match="expected condition to be at least 1"):
        Quadratic(8, condition=0.5)


def test_the_least_value_of_a_quadratic_is_where_least_squares_finds_it() -> None:
    task = Quadratic(6)
    W, y = (part.double() for part in parts(task))
    best = torch.from_numpy(np.linalg.lstsq(W.numpy(), y.numpy())[0])
    assert task.value(W @ best, y) < 1e-20


def test_quadratics_are_standard_normal() -> None:
    drawn = [Quadratic().draw(generator=seeded(seed)) for seed in range(200)]
    for numbers in (torch.stack([one.x for one in drawn]), torch.stack([one.y for one in drawn])):
        assert abs(numbers.mean().item()) < 0.05
        assert abs(numbers.std().item() - 1) < 0.05


@pytest.mark.parametrize("dimension", [2, 3, 10])
def test_rosenbrocks_function_and_slope_are_scipys(dimension: int) -> None:
    task = Rosenbrock(dimension)
    batch = task.batches(1, generator=seeded()).draw().map(torch.Tensor.double)
    point = Point(dimension, generator=seeded(1), dtype=torch.float64)
    loss = task.loss(point, batch)
    loss.backward()  # type: ignore[no-untyped-call]
    theta = point.theta.detach().numpy()
    assert loss.item() == pytest.approx(scipy.optimize.rosen(theta))
    assert point.theta.grad is not None
    np.testing.assert_allclose(point.theta.grad.numpy(), scipy.optimize.rosen_der(theta))


def test_rosenbrocks_minimum_is_at_ones() -> None:
    task = Rosenbrock(4)
    theta = torch.ones(4, requires_grad=True)
    loss = task.value(theta, torch.ones(4))
    (slope,) = torch.autograd.grad(loss, theta)
    assert loss == 0
    assert not slope.any()


@objectives
def test_every_batch_of_a_sampler_is_the_same_and_goes_into_its_state(task: Objective) -> None:
    sampler = task.batches(32, generator=seeded())
    other = task.batches(1, generator=seeded(1))
    other.load_state_dict(sampler.state_dict())
    for _ in range(2):
        one, same = sampler.draw(), other.draw()
        assert torch.equal(one.x, same.x)
        assert torch.equal(one.y, same.y)


def test_the_generator_decides_the_quadratic() -> None:
    one, same, other = (Quadratic().batches(1, generator=seeded(n)).draw() for n in (0, 0, 1))
    assert torch.equal(one.x, same.x)
    assert torch.equal(one.y, same.y)
    assert not torch.equal(one.x, other.x)


@objectives
def test_an_objective_has_one_metric_and_nothing_held_out(task: Objective) -> None:
    batch = task.batches(1, generator=seeded()).draw()
    point = Point(5, generator=seeded())
    assert task.measure(point, batch) == {"loss": (task.loss(point, batch).item(), 1)}
    assert {*task.measures} == {"loss"}
    assert list(task.held_out("test", 10)) == []
    assert not task.timed
    assert bibtex(task.reference)


@objectives
def test_many_learners_go_at_once(task: Objective) -> None:
    points = [Point(5, generator=seeded(seed)) for seed in range(3)]
    batches = [task.batches(1, generator=seeded(seed)).draw() for seed in range(3)]
    theta, _ = stack_module_state(points)

    def loss(theta: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return task.value(functional_call(points[0], theta, (x,)), y)

    x, y = (torch.stack([getattr(one, name) for one in batches]) for name in ("x", "y"))
    slopes = vmap(grad(loss))(theta, x, y)["theta"]
    for point, batch, slope in zip(points, batches, slopes, strict=True):
        task.loss(point, batch).backward()  # type: ignore[no-untyped-call]
        torch.testing.assert_close(slope, point.theta.grad)


def test_gradient_descent_finds_the_minimum() -> None:
    task, point = Rosenbrock(), Point(2, generator=seeded())
    batch = task.batches(1, generator=seeded()).draw()
    optimiser = torch.optim.LBFGS(point.parameters(), max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> float:
        optimiser.zero_grad()
        loss = task.loss(point, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.item()

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(point.theta.detach(), torch.ones(2), atol=1e-3, rtol=0)


def test_impossible_dimensions_are_refused() -> None:
    with pytest.raises(InputError, match="dimension to be at least 1, but got 0"):
        Quadratic(0)
    with pytest.raises(InputError, match="dimension to be at least 2, but got 1"):
        Rosenbrock(1)
    with pytest.raises(InputError, match="at least 1 dimension of a Point, but got 0"):
        Point(0)
