"""Equilibria of a map of the line, with their slopes and what they do to what is near."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.func import grad

from attractor.checks import whole
from attractor.dynamics.maps import Map, compose
from attractor.errors import InputError

Kind = Literal["sink", "source", "neutral", "period 2"]


@dataclass(frozen=True, slots=True)
class Equilibrium:
    """A point that the map keeps, or, with `period` 2, one that it comes back to.

    The slope is that of the map there; of a cycle, that of two steps. |slope| below 1 attracts.
    """

    x: float
    slope: float
    period: int = 1

    @property
    def attracts(self) -> bool:
        """Whether what is near comes nearer."""
        return abs(self.slope) < 1 - 1e-6

    @property
    def kind(self) -> Kind:
        """Sink, source or neutral, by the slope; or a point of a cycle of two."""
        if self.period == 2:
            return "period 2"
        if abs(abs(self.slope) - 1) <= 1e-6:
            return "neutral"
        return "sink" if self.attracts else "source"


@dataclass(frozen=True, slots=True)
class Equilibria:
    """The equilibria of a map between `low` and `high`, from left to right."""

    points: tuple[Equilibrium, ...]
    low: float
    high: float

    def __len__(self) -> int:
        return len(self.points)

    def __str__(self) -> str:
        if not self.points:
            return f"none found from {self.low:g} to {self.high:g}"
        told = []
        for point in self.points:
            what = (
                "" if point.period == 1 else " that attracts" if point.attracts else " that repels"
            )
            told.append(f"{point.kind}{what} at {point.x:.6g} (slope {point.slope:.4g})")
        return "; ".join(told)


def equilibria(
    step: Map,
    low: float = -3.0,
    high: float = 3.0,
    *,
    samples: int = 4001,
    period_2: bool = True,
) -> Equilibria:
    r"""Solve :math:`T(x) = x`, and :math:`T(T(x)) = x` for cycles of two, between two bounds.

    Sign changes of :math:`T(x) - x` on a grid are bisected, all at once and in double precision;
    where the outline only touches the diagonal, a golden-section search finds the least gap.
    A jump across the diagonal is no equilibrium.

    Args:
        step: T, element by element, differentiable by torch.
        low: where to begin to look.
        high: where to end.
        samples: points of the grid; two equilibria between neighbours may be taken for none.
        period_2: also look for cycles of two.

    Example:
        >>> print(equilibria(lambda x: torch.tanh(3 * x)))
        sink at -0.994902 (slope 0.03051); source at 0 (slope 3); sink at 0.994902 (slope 0.03051)
        >>> print(equilibria(lambda x: x + 1))
        none found from -3 to 3

    References:
        Kuo (2021), thesis, section 2.3.4.
    """
    if not low < high:
        raise InputError(f"expected low below high, but got {low} and {high}. Try -3 and 3.")
    whole("samples", samples, 3)
    fixed = _roots(step, low, high, samples)
    points = [Equilibrium(x, _slope(step, x)) for x in fixed]
    if period_2:
        twice = compose(step, 2)
        near = 1e-6 * (high - low)
        for x in _roots(twice, low, high, samples):
            if all(abs(x - one) > near for one in fixed) and _moves(step, x, near):
                points.append(Equilibrium(x, _slope(twice, x), period=2))
    return Equilibria(tuple(sorted(points, key=lambda one: one.x)), float(low), float(high))


def _moves(step: Map, x: float, least: float) -> bool:
    at = torch.tensor(x, dtype=torch.float64)
    return abs(float(step(at)) - x) > least


def _roots(step: Map, low: float, high: float, samples: int) -> list[float]:
    grid = torch.linspace(low, high, samples, dtype=torch.float64)
    if low < 0 < high:  # the origin is an equilibrium of most outlines: have it exactly
        grid = torch.cat([grid[grid != 0], torch.zeros(1, dtype=torch.float64)]).sort().values
    gap = step(grid) - grid
    if gap.shape != grid.shape:
        raise InputError(
            f"expected a map that keeps the shape {tuple(grid.shape)}, but it returned "
            f"{tuple(gap.shape)}. Try a function that works element by element."
        )
    if not bool(gap.isfinite().any()):
        raise InputError(
            f"expected a map with finite values from {low} to {high}, but there are none. "
            "Try other bounds."
        )
    if float((gap == 0).double().mean()) > 0.1:
        raise InputError(
            f"expected a map with separate equilibria, but it keeps a whole interval of the points "
            f"from {low} to {high} where they are. Try another map."
        )
    found = torch.cat([grid[gap == 0], _bisected(step, grid, gap), _touching(step, grid, gap)])
    scale = float(grid.abs().max())
    error = (step(found) - found).abs()
    kept = found[(error <= 1e-9 * max(scale, 1.0)) & (found >= low) & (found <= high)]
    roots: list[float] = []
    for x in kept.sort().values.tolist():
        if not roots or x - roots[-1] > 1e-6 * (high - low):
            roots.append(x)
    return roots


def _bisected(step: Map, grid: Tensor, gap: Tensor) -> Tensor:
    """Where the sign of the gap changes, halved until the ends are neighbours in the type."""
    change = gap[:-1] * gap[1:] < 0
    left, right, sign = grid[:-1][change], grid[1:][change], gap[:-1][change].sign()
    for _ in range(60):
        middle = (left + right) / 2
        same = (step(middle) - middle).sign() == sign
        left, right = torch.where(same, middle, left), torch.where(same, right, middle)
    return (left + right) / 2


def _touching(step: Map, grid: Tensor, gap: Tensor) -> Tensor:
    """Where the gap is smallest without a change of its sign."""
    size = gap.abs()
    least = (size[1:-1] <= size[:-2]) & (size[1:-1] <= size[2:])
    least &= (gap[1:-1] * gap[:-2] > 0) & (gap[1:-1] * gap[2:] > 0)
    left, right = grid[:-2][least], grid[2:][least]
    ratio = (5**0.5 - 1) / 2
    for _ in range(80):  # golden section on the size of the gap
        a, b = right - ratio * (right - left), left + ratio * (right - left)
        lower = (step(a) - a).abs() < (step(b) - b).abs()
        left, right = torch.where(lower, left, a), torch.where(lower, b, right)
    return (left + right) / 2


def _slope(step: Map, x: float) -> float:
    at = torch.tensor(x, dtype=torch.float64)
    return float(grad(step)(at))
