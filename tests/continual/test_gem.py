"""GEM's projection against an independent solver, on every kind of gradients."""

import numpy as np
import pytest
import scipy.optimize
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from attractor import InputError
from attractor.continual import GEM
from attractor.continual.rows import GroupMatrix
from attractor.continual.strategies.gem import RIDGE, multipliers, project
from attractor.tasks import cross_entropy
from continual.helpers import batch, digits, mlp, seeded

Floats = NDArray[np.float64]


def objective(gram: Floats, overlap: Floats, v: Floats) -> float:
    P = gram + RIDGE * np.diag(gram.diagonal())
    return float(0.5 * v @ P @ v + overlap @ v)


def by_projected_gradient(gram: Floats, overlap: Floats, margin: float) -> Floats:
    """The same minimum by accelerated descent on the box, in another hand's way."""
    P = gram + RIDGE * np.diag(gram.diagonal())
    step = 1 / np.linalg.eigvalsh(P)[-1]
    v = ahead = np.full(len(overlap), margin)
    for count in range(2_000):
        new = np.maximum(margin, ahead - step * (P @ ahead + overlap))
        ahead = new + count / (count + 3) * (new - v)
        v = new
    return v


# zero, or large enough for its square not to vanish
numbers = st.floats(-3, 3, allow_subnormal=False).map(lambda x: round(x, 6))


@st.composite
def gradients(draw: st.DrawFn) -> tuple[Floats, Floats]:
    """A gradient and those of earlier tasks, some of them zero, equal, opposite or dependent."""
    tasks, size = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    row = st.lists(numbers, min_size=size, max_size=size)
    G = np.array(draw(st.lists(row, min_size=tasks, max_size=tasks)))
    for task in range(1, tasks):
        kind = draw(st.sampled_from(["as it is", "zero", "equal", "opposite", "sum"]))
        if kind != "as it is":
            G[task] = {"zero": 0 * G[0], "equal": G[0], "opposite": -G[0]}.get(kind, G.sum(0))
    return np.array(draw(row)), G


def by_bounded_least_squares(g: Floats, G: Floats, margin: float) -> Floats:
    """The same minimum in the space of the parameters: |G'v + g|^2 + ridge sum |g_u|^2 v_u^2."""
    A = np.concatenate([G.T, RIDGE**0.5 * np.diag(np.linalg.norm(G, axis=1))])
    b = np.concatenate([-g, np.zeros(len(G))])
    found: Floats = scipy.optimize.lsq_linear(A, b, bounds=(margin, np.inf), method="bvls").x
    return found


@settings(max_examples=100, deadline=None)
@given(gradients(), st.sampled_from([0.0, 0.5]))
def test_the_solution_is_that_of_bounded_least_squares(
    case: tuple[Floats, Floats], margin: float
) -> None:
    g, G = case
    gram, overlap = G @ G.T, G @ g
    v = multipliers(gram, overlap, margin)
    assert (v >= margin).all()
    other = by_bounded_least_squares(g, G, margin)
    least = objective(gram, overlap, other)
    assert objective(gram, overlap, v) <= least + 1e-5 * (1 + abs(least))
    np.testing.assert_allclose(g + v @ G, g + other @ G, atol=1e-3 * (1 + np.abs(g).max()))


def test_nothing_is_projected_where_slopes_are_zero_but_for_their_rounding() -> None:
    # a solver of non-negative least squares leaves the minimum here
    G = np.array(
        [[0.832031, 1.90625, -1, 0], [-0.6875, 0, 2, 2.125], [-0.625, 0.203125, 1.402116, 0]]
    )
    v = multipliers(G @ G.T, G @ np.array([0.0, 0.0, 0.0, 1.5]))
    np.testing.assert_allclose(v, 0, atol=1e-9)


@pytest.mark.parametrize("tasks", [1, 4, 19])
@pytest.mark.parametrize("margin", [0.0, 0.5])
def test_the_solution_is_that_of_projected_gradient_descent(tasks: int, margin: float) -> None:
    random = np.random.default_rng(tasks)
    G, g = random.normal(size=(tasks, 300)), random.normal(size=300)
    gram, overlap = G @ G.T, G @ g
    other = by_projected_gradient(gram, overlap, margin)
    np.testing.assert_allclose(multipliers(gram, overlap, margin), other, atol=1e-6)


lengths = st.floats(-6, 6).map(lambda power: 10.0**power)


@settings(max_examples=200, deadline=None)
@given(gradients(), lengths, st.lists(lengths, min_size=6, max_size=6))
@example((np.array([2.0]), np.array([[-0.0625]])), 1.0, [1.0] * 6)
@example(
    (np.array([1.0, 0.3]), np.array([[-1.0, 0.0], [1.0, 0.01]])), 1e-6, [1e6, 1e-6, *[1.0] * 4]
)
def test_without_a_margin_no_earlier_loss_grows(
    case: tuple[Floats, Floats], length: float, each: list[float]
) -> None:
    """Of gradients of any length, from 1e-6 to 1e6, and each of its own."""
    g = torch.tensor(case[0] * length)
    G = torch.tensor(case[1] * np.array(each[: len(case[1])])[:, None])
    new = project(g, GroupMatrix([G]))
    allowed = RIDGE**0.5 * g.norm() * G.norm(dim=1)  # at worst, where tasks contradict one another
    assert (G @ new >= -1.001 * allowed).all()
    assert new.norm() <= 1.001 * g.norm()  # the nearest point of a cone is no farther from zero


@settings(max_examples=100, deadline=None)
@given(gradients(), lengths, lengths)
def test_the_projection_does_not_depend_on_units(
    case: tuple[Floats, Floats], one: float, other: float
) -> None:
    g, G = (torch.tensor(some) for some in case)
    expected = project(g, GroupMatrix([G])) * one
    found = project(g * one, GroupMatrix([G * other]))
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6 * one * (1 + float(g.norm())))


@pytest.mark.parametrize("length", [1e-6, 0.03, 1.0, 200.0, 1e6])
def test_short_and_long_gradients_are_projected_alike(length: float) -> None:
    random = torch.Generator().manual_seed(0)
    G = torch.randn(3, 40, generator=random) * length / 40**0.5
    g = -G.sum(0) + torch.randn(40, generator=random) * length / 40**0.5
    cosines = torch.cosine_similarity(G, project(g, GroupMatrix([G]))[None])
    assert cosines.abs().max() < 1e-3  # all three were hurt, and are no longer


def test_one_task_that_would_be_hurt_is_enough() -> None:
    """The mean overlap is above zero, and yet one task has to be spared."""
    stream, model = digits(), mlp()
    strategy = GEM(20, margin=0.0)
    strategy.start(model, stream, generator=seeded())
    for task in stream[:2]:
        strategy.observe(batch(task))
    flat = strategy.gradients.flat
    old = [flat.gradient_of(cross_entropy(model, batch(task))) for task in stream[:2]]
    strategy.observe(batch(stream[2]))
    apart = old[0] - (old[0] @ old[1]) / (old[1] @ old[1]) * old[1]
    # along 0 and slightly against 1, of which 0 is much the stronger
    g = 5 * apart / apart.norm() ** 2 - 0.1 * old[1] / old[1].norm() ** 2
    overlaps = torch.stack([one @ g for one in old])
    assert overlaps[1] < 0 < overlaps.mean()
    flat.set_gradient(g.clone())
    strategy.after_backward(model)
    found = flat.gradient()
    assert not torch.equal(found, g)
    assert abs(float(found @ old[1])) < 1e-3 * float(found.norm() * old[1].norm())
    flat.set_gradient(old[0] + old[1])  # which hurts neither stays as it is
    if min(float(one @ (old[0] + old[1])) for one in old) >= 0:
        strategy.after_backward(model)
        assert torch.equal(flat.gradient(), old[0] + old[1])


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InputError, match="expected margin to be at least 0, but got -1"):
        GEM(margin=-1)
    with pytest.raises(InputError, match="expected size to be at least 1, but got 0"):
        GEM(0)


def test_hand_worked() -> None:
    # g = (1, -1), one earlier gradient (0, 2): v = 2 / (4 + 4 ridge), so g becomes (1, ~0)
    new = project(torch.tensor([1.0, -1.0]), GroupMatrix([torch.tensor([[0.0, 2.0]])]))
    assert new.tolist() == pytest.approx([1, -1 + 2 * 2 / (4 + 4 * RIDGE)], abs=1e-6)
    # the margin is a lower bound of v, not something added to it
    new = project(torch.tensor([1.0, -1.0]), GroupMatrix([torch.tensor([[0.0, 2.0]])]), margin=3.0)
    assert new.tolist() == pytest.approx([1, -1 + 3 * 2])


@pytest.mark.parametrize("scale", [1e-20, 1e-6, 1.0, 1e6, 1e15])
def test_gradients_of_any_size(scale: float) -> None:
    random = torch.Generator().manual_seed(0)
    G = torch.randn(5, 50, generator=random) * scale
    G[3] = G[2]
    G[4] = -G[1]
    g = torch.randn(50, generator=random) * scale
    new = project(g, GroupMatrix([G[:, :20], G[:, 20:]]), 0.5)
    assert torch.isfinite(new).all()


def test_diverged_gradients_pass() -> None:
    assert multipliers(np.array([[np.nan]]), np.array([1.0])).tolist() == [0]


def test_a_solver_that_gives_up_has_a_deputy(monkeypatch: pytest.MonkeyPatch) -> None:
    def gives_up(*_: object, **__: object) -> None:
        raise RuntimeError("Maximum number of iterations reached.")

    random = np.random.default_rng(1)
    G, g = random.normal(size=(6, 40)), random.normal(size=40)
    expected = multipliers(G @ G.T, G @ g, 0.5)
    monkeypatch.setattr(scipy.optimize, "nnls", gives_up)
    np.testing.assert_allclose(multipliers(G @ G.T, G @ g, 0.5), expected, atol=1e-8)
