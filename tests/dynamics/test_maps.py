"""Difference systems: orbits, cobwebs, equilibria and bifurcations with known answers."""

import math

import pytest
import torch

from attractor.dynamics import (
    bifurcation,
    cell_map,
    cobweb,
    equilibria,
    expression,
    henon,
    logistic,
    orbit,
    regime,
    tent,
)
from attractor.errors import InputError


def test_an_orbit_of_the_tent_map() -> None:
    assert orbit(tent(2.0), 0.2, 4).tolist() == pytest.approx([0.2, 0.4, 0.8, 0.4, 0.8])


def test_henon_keeps_batches() -> None:
    states = torch.tensor([[1.0, 0.5], [0.0, -2.0]])
    assert henon(1.2, 0.4)(states).tolist() == [pytest.approx([0.3, 0.4]), [-1.0, 0.0]]


def test_the_corners_of_a_cobweb_are_computation_then_update() -> None:
    web = cobweb(lambda x: 1.5 * x, 2.0, steps=2, low=-1, high=5, before=lambda x: -x, samples=7)
    assert web.path.tolist() == [[2, 2], [2, 3], [3, 3], [3, 4.5], [4.5, 4.5]]
    assert web.outline[:, 0].tolist() == [-1, 0, 1, 2, 3, 4, 5]
    assert torch.equal(web.outline[:, 1], 1.5 * web.outline[:, 0])
    assert web.before is not None
    assert torch.equal(web.before[:, 1], -web.outline[:, 0])


def test_a_cobweb_that_leaves_all_bounds_says_when() -> None:
    with pytest.raises(InputError, match="from 2.0 it leaves all bounds in step 10"):
        cobweb(lambda x: x**2, 2.0, steps=12)


@pytest.mark.parametrize(
    ("r", "x", "slope", "kind"),
    [(2.5, 0.6, -0.5, "sink"), (3.3, 1 - 1 / 3.3, -1.3, "source"), (3.0, 2 / 3, -1.0, "neutral")],
)
def test_equilibria_of_the_logistic_map(r: float, x: float, slope: float, kind: str) -> None:
    found = equilibria(logistic(r), 0.05, 1.0, period_2=False)
    (point,) = found.points
    assert point.x == pytest.approx(x, abs=1e-9)
    assert point.slope == pytest.approx(slope, abs=1e-6)
    assert point.kind == kind


def test_the_cycle_of_two_of_the_logistic_map() -> None:
    r = 3.2
    cycle = [p for p in equilibria(logistic(r), 0.05, 1.0).points if p.period == 2]
    root = math.sqrt((r - 3) * (r + 1))
    assert [p.x for p in cycle] == pytest.approx(
        [(r + 1 - root) / (2 * r), (r + 1 + root) / (2 * r)]
    )
    assert [p.slope for p in cycle] == pytest.approx([4 + 2 * r - r * r] * 2)
    assert all(p.attracts and p.kind == "period 2" for p in cycle)


def test_an_outline_that_touches_the_diagonal_has_an_equilibrium() -> None:
    (point,) = equilibria(lambda x: x * x + 0.25, -0.4, 2.0).points
    assert point.x == pytest.approx(0.5, abs=1e-6)
    assert point.kind == "neutral"


def test_a_jump_is_no_equilibrium_and_none_found_is_said() -> None:
    found = equilibria(lambda x: x - torch.where(x > 0.1234, 1.0, -1.0), -1.05, 2, period_2=False)
    assert len(found) == 0
    assert str(found) == "none found from -1.05 to 2"


def test_a_map_that_keeps_all_points_is_refused() -> None:
    with pytest.raises(InputError, match="keeps a whole interval"):
        equilibria(lambda x: x)


@pytest.mark.parametrize(("f", "i"), [(1.0, 1.0), (0.25, 0.0), (0.9, 0.5), (0.25, 0.15)])
def test_the_origin_of_the_cell_map_is_what_the_regime_says(f: float, i: float) -> None:
    origin = next(p for p in equilibria(cell_map(f, i)).points if p.x == 0)
    assert origin.slope == pytest.approx(f + i)
    assert {"sink": "catch", "source": "release"}[origin.kind] == regime(f, i)


def test_bifurcation_of_the_logistic_map_by_period() -> None:
    ends = bifurcation(lambda x, r: r * x * (1 - x), torch.tensor([2.8, 3.2, 3.5]), keep=8)
    periods = [len({round(x, 6) for x in row}) for row in ends.states.tolist()]
    assert periods == [1, 2, 4]
    assert ends.states.shape == (3, 8)


def test_expressions_are_what_they_say() -> None:
    x = torch.tensor([-1.5, 0.25, 2.0], dtype=torch.float64)
    function = expression("max(-x, 2**x) / (1 + exp(-0.5*x)) - pi*sign(x) + e")
    expected = torch.maximum(-x, 2**x) / (1 + torch.exp(-0.5 * x)) - math.pi * x.sign() + math.e
    torch.testing.assert_close(function(x), expected)
    torch.testing.assert_close(expression("3")(x), torch.full_like(x, 3))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("y + 1", "unknown name 'y'"),
        ("__import__('os')", "part of another kind|calls '__import__'"),
        ("x.__class__", "part of another kind"),
        ("(lambda: 1)()", "part of another kind"),
        ("x if x else 1", "part of another kind"),
        ("tanh(x, x)", "calls 'tanh' with 2"),
        ("tanh(3*x", "cannot be read"),
        ("x+" * 200 + "x", "of 1 to 200 characters, but got 401"),
        ("", "of 1 to 200 characters"),
        ("(" * 150 + "x", "cannot be read"),
        ("1" * 190 + "*x", "map of numbers|expected"),
        ("True + x", "part of another kind"),
    ],
)
def test_what_is_no_map_is_said_in_a_sentence(text: str, said: str) -> None:
    if text.startswith("1" * 190):
        assert expression(text)(torch.zeros(1).double()).isfinite().all()
        return
    with pytest.raises(InputError, match=said):
        expression(text)


def test_towers_of_powers_cost_nothing() -> None:
    assert expression("9**9**9**9**9 * x")(torch.ones(1, dtype=torch.float64)).isinf().all()
