"""Vector fields, null-clines and basins, on a plane through the states of any system."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import vmap

from attractor.checks import whole
from attractor.dynamics.fixed import FixedPoints, fixed_points
from attractor.errors import InputError


@dataclass(frozen=True, slots=True)
class Plane:
    """A plane through states: a point on it ``(size,)`` and two directions ``(2, size)``."""

    origin: Tensor
    axes: Tensor
    explained: tuple[float, float] | None = None

    def lift(self, coordinates: Tensor) -> Tensor:
        """States ``(..., size)`` at coordinates ``(..., 2)``."""
        return self.origin + coordinates @ self.axes

    def project(self, states: Tensor) -> Tensor:
        """Coordinates ``(..., 2)`` of states ``(..., size)``, for directions at right angles."""
        return torch.matmul(
            states - self.origin, (self.axes / self.axes.norm(dim=-1, keepdim=True) ** 2).T
        )


def slice_plane(size: int, first: int = 0, second: int = 1, origin: Tensor | None = None) -> Plane:
    """The plane of two numbers of a state, the others as in `origin` (zero if not given).

    Example:
        >>> slice_plane(3, 0, 2).lift(torch.tensor([1.0, 5.0]).double()).tolist()
        [1.0, 0.0, 5.0]
    """
    for index in (first, second):
        if not 0 <= index < size:
            raise InputError(
                f"expected numbers of a state from 0 to {size - 1}, but got {index}. Try 0 and 1."
            )
    base = torch.zeros(size, dtype=torch.float64) if origin is None else origin.double()
    axes = torch.zeros(2, size, dtype=torch.float64)
    axes[0, first] = axes[1, second] = 1.0
    return Plane(base, axes)


def pca_plane(states: Tensor) -> Plane:
    """The plane that holds most of the variance of states ``(n, size)``.

    Example:
        >>> line = torch.tensor([[0.0, 0.0, 1.0], [3.0, 4.0, 1.0], [6.0, 8.0, 1.0]])
        >>> pca_plane(line).explained
        (1.0, 0.0)
    """
    if states.dim() != 2 or len(states) < 3:
        raise InputError(
            f"expected at least three states in rows, but got {tuple(states.shape)}. "
            "Try the states of a longer sequence."
        )
    centred = states.double() - states.double().mean(0)
    _, values, axes = torch.linalg.svd(centred, full_matrices=False)
    share = values.square() / values.square().sum().clamp_min(1e-300)
    told = [round(float(one), 12) for one in [*share[:2], torch.zeros(())][:2]]
    return Plane(states.double().mean(0), axes[:2], (told[0], told[1]))


@dataclass(frozen=True, slots=True)
class Field:
    """How states on a grid of a plane move: x ``(n,)``, y ``(m,)``, movement ``(m, n, 2)``.

    The null-clines are where a component of the movement is zero. `basins` ``(m, n)`` numbers the
    stable points that the states go to, -1 where they go to none.
    """

    x: Tensor
    y: Tensor
    movement: Tensor
    points: FixedPoints | None = None
    basins: Tensor | None = None
    coordinates: Tensor | None = None

    @property
    def speed(self) -> Tensor:
        """Lengths of the movement, ``(m, n)``."""
        lengths: Tensor = torch.linalg.vector_norm(self.movement, dim=-1)
        return lengths


@torch.no_grad()
def vector_field(
    step: Callable[[Tensor], Tensor],
    plane: Plane | None = None,
    *,
    low: float | tuple[float, float] = -2.0,
    high: float | tuple[float, float] = 2.0,
    samples: int = 41,
    basins: int = 0,
    starts: int = 200,
) -> Field:
    """How a system moves states on a plane, where it stands still, and where they end.

    Args:
        step: from one flat state ``(size,)`` to the next, such as ``system(model).step``.
        plane: through the states; by default the two numbers of a state of two.
        low: least values of the coordinates, one for both or one each.
        high: largest values, likewise.
        samples: of each side of the grid.
        basins: follow every state of the grid for so many steps, and say at which stable point
            it ends; 0 for no basins.
        starts: for the fixed points, spread over the same bounds.

    Example:
        >>> field = vector_field(lambda s: 0.5 * s, samples=3, basins=50)
        >>> field.movement[0, 2].tolist(), field.basins.unique().tolist()
        ([-1.0, 1.0], [0])
    """
    whole("samples", samples, 2)
    plane = plane or slice_plane(2)
    lows, highs = _pair(low), _pair(high)
    x, y = (
        torch.linspace(a, b, samples, dtype=torch.float64) for a, b in zip(lows, highs, strict=True)
    )
    grid = torch.stack(torch.meshgrid(x, y, indexing="xy"), -1)
    states = plane.lift(grid).flatten(0, 1)
    movement = plane.project(vmap(step)(states)) - plane.project(states)
    if not bool(movement.isfinite().any()):
        raise InputError(
            "expected a step that keeps states finite, but it moves none of the grid to a finite "
            "place. Try smaller bounds."
        )
    made = torch.rand(starts, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    begin = torch.tensor(lows) + made * (torch.tensor(highs) - torch.tensor(lows))
    points = fixed_points(step, plane.lift(begin.double()))
    return Field(
        x,
        y,
        movement.reshape(*grid.shape[:2], 2),
        points,
        _basins(step, states, points, basins).reshape(grid.shape[:2]) if basins else None,
        plane.project(points.points),
    )


def _pair(value: float | tuple[float, float]) -> tuple[float, float]:
    return (float(value[0]), float(value[1])) if isinstance(value, tuple) else (value, value)


def _basins(
    step: Callable[[Tensor], Tensor], states: Tensor, points: FixedPoints, steps: int
) -> Tensor:
    """The number of the stable point at which each state ends, or -1."""
    many = vmap(step)
    for _ in range(steps):
        states = many(states)
    stable = torch.tensor([kind == "stable" for kind in points.stability], dtype=torch.bool)
    ends = torch.full((len(states),), -1)
    if bool(stable.any()):
        gaps = torch.cdist(states.nan_to_num(torch.inf), points.points[stable])
        nearest = gaps.min(-1)
        arrived = nearest.values <= 1e-2 * (1 + points.points[stable][nearest.indices].norm(dim=-1))
        ends[arrived] = nearest.indices[arrived]
    return ends


def euler(derivative: Callable[[Tensor], Tensor], zeta: float = 0.1) -> Callable[[Tensor], Tensor]:
    r"""The difference system :math:`u_{t+1} = u_t + \zeta Q(u_t)` of a differential one.

    Example:
        >>> euler(lambda u: -u, 0.5)(torch.tensor(2.0))
        tensor(1.)

    References:
        Kuo (2021), thesis, equation 2.9.
    """
    return lambda u: u + zeta * derivative(u)
