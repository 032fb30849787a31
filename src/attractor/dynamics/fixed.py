"""Fixed points, slow points and cycles of any step function, in any dimension."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Generator, Tensor
from torch.func import jacrev, vmap

from attractor.checks import positive, whole
from attractor.dynamics.maps import compose
from attractor.dynamics.solving import solve
from attractor.dynamics.systems import Steppable, System, system
from attractor.errors import InputError

Stability = Literal["stable", "saddle", "unstable", "neutral"]


@dataclass(frozen=True, slots=True)
class FixedPoints:
    """Points that a system keeps, one row each, from the most often reached on.

    Attributes:
        points: ``(n, size)``.
        speed: half the squared length of a step from each, ``(n,)``.
        eigenvalues: of the Jacobian of one step (of a cycle: of one round), ``(n, size)``, largest
            first.
        reached: from how many starts, ``(n,)``.
        slow: points ``(m, size)`` where the speed has a minimum that is not zero.
        slow_speed: their speeds, ``(m,)``.
        starts: how many there were.
        period: steps of a round; 1 for fixed points.
    """

    points: Tensor
    speed: Tensor
    eigenvalues: Tensor
    reached: Tensor
    slow: Tensor
    slow_speed: Tensor
    starts: int
    period: int = 1

    def __len__(self) -> int:
        return len(self.points)

    @property
    def stability(self) -> list[Stability]:
        """By the moduli of the eigenvalues: all below 1 is stable, all above 1 unstable."""
        kinds: list[Stability] = []
        for row in self.eigenvalues.abs():
            if bool(((row - 1).abs() <= 1e-6).any()):
                kinds.append("neutral")
            elif bool((row < 1).all()):
                kinds.append("stable")
            else:
                kinds.append("unstable" if bool((row > 1).all()) else "saddle")
        return kinds

    def __str__(self) -> str:
        points = "point" if len(self) == 1 else "points"
        what = f"fixed {points}" if self.period == 1 else f"{points} of cycles of {self.period}"
        slow = f"; {len(self.slow)} slow point{'s'[: len(self.slow) > 1]}" if len(self.slow) else ""
        if not len(self):
            return f"{what}: none found from {self.starts} starts{slow}"
        kinds = self.stability
        told = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
        many = f"from {int(self.reached.sum())} of {self.starts} starts"
        return f"{len(self)} {what} ({told}) {many}{slow}"


def fixed_points(
    step: Steppable,
    starts: int | Tensor = 1000,
    *,
    input: Tensor | None = None,  # noqa: A002 - as nn.GRU names it
    x0: Any = None,
    size: int | None = None,
    period: int = 1,
    spread: float = 1.0,
    along: int = 512,
    tolerance: float = 1e-18,
    slow: float = 1e-3,
    distance: float = 1e-4,
    iterations: int = 200,
    generator: Generator | None = None,
) -> FixedPoints:
    r"""Find where :math:`F(h) = h`, from many starts at once.

    Minimises the speed :math:`q(h) = \frac12 \|F(h) - h\|^2` by Levenberg-Marquardt in double
    precision (`attractor.dynamics.solving.solve`), so unstable points are found like stable ones.
    What is not slower than `tolerance` is no fixed point, however small its gradient: minima of
    the speed that are slower than `slow` are told apart as slow points.

    Args:
        step: a function from one state to the next, a cell, a layer, torch's own ``nn.GRU`` and
            the like, or any other module.
        starts: how many random ones, or the states ``(n, size)`` themselves.
        input: what a recurrent network reads at every step; zero if not given.
        x0: a state in the shape that a function expects.
        size: numbers of a state, for a function of vectors.
        period: look for cycles of this many steps, which no shorter cycle repeats.
        spread: random starts are uniform between minus and plus this.
        along: every other random start is first moved on by the system itself, for up to so many
            steps: the speed has minima of its own, which hold starts that no orbit visits.
        tolerance: the speed below which a point is fixed.
        slow: the speed below which a minimum is a slow point.
        distance: points nearer than this, times one plus their length, are one.
        iterations: at most so many of the solver.
        generator: draws the starts; ``None`` means a fixed seed.

    Example:
        >>> found = fixed_points(lambda x: torch.tanh(3 * x), 50, size=1)
        >>> print(found)
        3 fixed points (2 stable, 1 unstable) from 50 of 50 starts
        >>> [round(x, 4) + 0 for x in sorted(found.points[:, 0].tolist())]
        [-0.9949, 0.0, 0.9949]

    Departs from the paper: Levenberg-Marquardt instead of gradient descent, and points are
    filtered by their speed.

    References:
        Sussillo and Barak (2013), Opening the black box: low-dimensional dynamics in
        high-dimensional recurrent neural networks.
    """
    whole("period", period, 1)
    positive("tolerance", tolerance)
    made = system(step, input=input, x0=x0, size=_size(starts, size) if x0 is None else None)
    begin = _starts(made, starts, spread, generator)
    if isinstance(starts, int):
        begin = _followed(made, begin, whole("along", along, 0))
    round_ = compose(made.step, period)
    first = vmap(round_)(begin).isfinite().all(-1)
    if not bool(first.any()):
        raise InputError(
            f"expected a step that keeps states finite, but all {len(begin)} starts leave all "
            "bounds at once. Try smaller starts, with spread=0.1."
        )
    begin = begin[first]
    solved = solve(round_, begin, tolerance=tolerance, iterations=iterations)
    fixed = solved.speed <= tolerance
    if period > 1:
        fixed &= ~_shorter(made, solved.points, period, distance)
    points, speed, reached = _unique(solved.points[fixed], solved.speed[fixed], distance)
    lingers = solved.settled & (solved.speed > tolerance) & (solved.speed <= slow)
    slow_points, slow_speed, _ = _unique(solved.points[lingers], solved.speed[lingers], distance)
    order = reached.argsort(descending=True, stable=True)
    points, speed, reached = points[order], speed[order], reached[order]
    return FixedPoints(
        points,
        speed,
        eigenvalues(round_, points),
        reached,
        slow_points,
        slow_speed,
        starts if isinstance(starts, int) else len(starts),
        period,
    )


@torch.no_grad()
def eigenvalues(step: Steppable, points: Tensor) -> Tensor:
    """Eigenvalues ``(n, size)`` of the Jacobian of a step at flat states, largest modulus first."""
    if not len(points):
        return points.new_zeros(points.shape, dtype=torch.complex128)
    jacobians = vmap(jacrev(step), chunk_size=max(1, 2**22 // points.shape[-1] ** 2))(points)
    values: Tensor = torch.linalg.eigvals(jacobians)
    return torch.gather(values, -1, values.abs().argsort(dim=-1, descending=True))


def _size(starts: int | Tensor, size: int | None) -> int | None:
    return int(starts.shape[-1]) if size is None and isinstance(starts, Tensor) else size


def _starts(
    made: System, starts: int | Tensor, spread: float, generator: Generator | None
) -> Tensor:
    if isinstance(starts, Tensor):
        if starts.dim() != 2 or starts.shape[1] != made.size:
            raise InputError(
                f"expected starts of shape (n, {made.size}), one state in each row, but got "
                f"{tuple(starts.shape)}. Try starts=1000 for random ones."
            )
        return starts.detach().to(made.start)
    drawn = torch.rand(
        whole("starts", starts, 1),
        made.size,
        dtype=torch.float64,
        generator=generator or torch.Generator().manual_seed(0),
    )
    return ((2 * drawn - 1) * positive("spread", spread)).to(made.start)


@torch.no_grad()
def _followed(made: System, starts: Tensor, along: int) -> Tensor:
    """The starts, every other one some steps later; many a few, few as many as `along`.

    A state that stands still needs no more steps.
    """
    followed = torch.arange(1, len(starts), 2, device=starts.device)
    if not along or not len(followed):
        return starts
    powers = torch.linspace(0, 1, len(followed), device=starts.device)
    left = (along**powers).round().long()
    states, found = starts[followed], starts.clone()
    for step in range(1, along + 1):
        before, states = states, made.many(states)
        still = (states - before).norm(dim=-1) <= 1e-9 * (1 + states.norm(dim=-1))
        ends = (left == step) | still
        good = states.isfinite().all(-1)
        found[followed[ends & good]] = states[ends & good]
        goes_on = ~ends & good
        states, followed, left = states[goes_on], followed[goes_on], left[goes_on]
        if not len(states):
            break
    return found


def _shorter(made: System, points: Tensor, period: int, distance: float) -> Tensor:
    """Which points come back after fewer steps than a round, as its divisors allow."""
    returns = torch.zeros(len(points), dtype=torch.bool, device=points.device)
    for steps in range(1, period):
        if period % steps == 0:
            moved = (vmap(compose(made.step, steps))(points) - points).norm(dim=-1)
            returns |= moved <= distance * (1 + points.norm(dim=-1))
    return returns


def _unique(points: Tensor, speed: Tensor, distance: float) -> tuple[Tensor, Tensor, Tensor]:
    """The slowest of each group of points that are near one another, and the groups' sizes."""
    order = speed.argsort(stable=True)
    points, speed = points[order], speed[order]
    left = torch.ones(len(points), dtype=torch.bool, device=points.device)
    kept, sizes = [], []
    for row in range(len(points)):
        if left[row]:
            near = (points - points[row]).norm(dim=-1) <= distance * (1 + points[row].norm())
            near &= left
            left &= ~near
            kept.append(row)
            sizes.append(int(near.sum()))
    index = torch.tensor(kept, dtype=torch.long, device=points.device)
    return points[index], speed[index], torch.tensor(sizes, dtype=torch.long)
