"""Levenberg-Marquardt from many starts, and points that serve the starts after them."""

import pytest
import torch
from torch import Tensor

from attractor.dynamics import solving

MIXED = torch.tensor([[1.0, 3.0], [0.0, 1.0]], dtype=torch.float64)


def two_roots(state: Tensor) -> Tensor:
    """Rests at (1, 0) and (-1, 0); its residual is M (x² - 1, y)."""
    x, y = state.unbind(-1)
    return state + MIXED @ torch.stack([x * x - 1, y])


def test_a_known_point_serves_where_newton_halves_the_residual() -> None:
    root = torch.tensor([1.0, 0.0], dtype=torch.float64)
    # with the Jacobian at the root the residual changes by 1 - x + (x² - 1) / 4
    h = torch.tensor([[1.5, 0.0], [0.4, 0.0], [0.2, 0.0], [-1.1, 0.0]], dtype=torch.float64)
    points, speed = solving._slide(two_roots, h, root, 1e-18)
    assert (speed <= 1e-18).tolist() == [True, True, False, False]
    assert speed[2:].isinf().all()
    assert points[:2] == pytest.approx(root.expand(2, 2), abs=1e-9)


def test_a_singular_point_serves_nobody() -> None:
    h = torch.full((3, 2), 0.5, dtype=torch.float64)
    points, speed = solving._slide(lambda state: state + state * state, h, 0 * h[0], 1e-18)
    assert speed.isinf().all()
    assert points.equal(h)


def test_serving_changes_no_point_and_is_tried_once_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = torch.Generator().manual_seed(3)
    starts = 4 * torch.rand(300, 2, generator=generator, dtype=torch.float64) - 2
    monkeypatch.setattr(solving, "BYTES", 8 * 4 * 20)  # 20 starts in a chunk
    served, slide = [], solving._slide

    def counted(step: object, h: Tensor, root: Tensor, tolerance: float) -> tuple[Tensor, Tensor]:
        served.append(len(h))
        return slide(step, h, root, tolerance)  # type: ignore[arg-type]

    monkeypatch.setattr(solving, "_slide", counted)
    solved = solving.solve(two_roots, starts, tolerance=1e-18, iterations=100)
    assert solved.settled.all()
    assert solved.points[:, 0].abs() == pytest.approx(torch.ones(300), abs=1e-9)
    assert 2 <= len(served) <= 4
    assert served[0] == 300 - solving.FIRST
    monkeypatch.setattr(
        solving, "_slide", lambda step, h, *_: (h, torch.full_like(h[:, 0], torch.inf))
    )
    alone = solving.solve(two_roots, starts, tolerance=1e-18, iterations=100)
    assert alone.speed.max() <= 1e-18
    sides = (solved.points[:, 0] > 0), (alone.points[:, 0] > 0)
    assert (sides[0] == sides[1]).double().mean() > 0.9
