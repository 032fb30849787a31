"""Levenberg-Marquardt from many starts at once, on the speed of a system."""

from collections.abc import Callable
from itertools import chain, repeat
from typing import NamedTuple

import torch
from torch import Tensor
from torch.func import jacrev, vmap

BYTES = 2**22
"""What the Jacobians of one chunk of starts may take."""

FIRST = 8
"""Starts of the first chunk; what it finds may serve all others."""

SAME = 1e-6
"""Fixed points nearer than this, times one plus their length, are one."""


class Solved(NamedTuple):
    """Where each start ended ``(starts, size)``, its speed, and whether it stands still there.

    The speed is half the squared length of a step; a start that stands still where its speed is
    not zero is at a slow point, a local minimum of the speed.
    """

    points: Tensor
    speed: Tensor
    settled: Tensor


@torch.no_grad()
def solve(
    step: Callable[[Tensor], Tensor], starts: Tensor, *, tolerance: float, iterations: int
) -> Solved:
    r"""Minimise :math:`q(h) = \frac12 \|F(h) - h\|^2` from every row of `starts`.

    Each iteration solves :math:`(A^\top A + \lambda I) \delta = -A^\top r` for the starts that
    still move, with :math:`r = F(h) - h` and :math:`A = \partial r / \partial h` from
    ``vmap(jacrev)``; :math:`\lambda` of each start falls with every step that lowers q, and grows
    with every one that does not. Starts are taken in chunks, so memory is bounded. A point that one
    chunk finds serves the later ones: starts that its own Jacobian takes straight there need no
    derivatives of theirs (`_slide`).
    """
    n, size = starts.shape
    rows = max(1, BYTES // (starts.element_size() * size * size))
    points, speed = starts.clone(), torch.full_like(starts[:, 0], torch.inf)
    settled = torch.zeros_like(speed, dtype=torch.bool)
    waiting = torch.randperm(n, generator=torch.Generator().manual_seed(0)).to(starts.device)
    nearest, known = torch.full_like(speed, torch.inf), starts[:0]
    for chunk in chain([min(FIRST, rows)], repeat(rows)):
        now, waiting = waiting[:chunk], waiting[chunk:]
        if not len(now):
            break
        points[now], speed[now], settled[now] = _chunk(step, starts[now], tolerance, iterations)
        for root in points[now[speed[now] <= tolerance]]:
            if bool(((known - root).norm(dim=-1) <= SAME * (1 + root.norm())).any()):
                continue
            known = torch.cat([known, root[None]])
            away = (starts[waiting] - root).norm(dim=-1)
            tried = waiting[away < nearest[waiting]]
            nearest[waiting] = torch.minimum(nearest[waiting], away)
            if len(tried):
                points[tried], speed[tried] = _slide(step, starts[tried], root, tolerance)
                waiting = waiting[speed[waiting] > tolerance]
    return Solved(points, speed, settled | (speed <= tolerance))


def _slide(
    step: Callable[[Tensor], Tensor], h: Tensor, root: Tensor, tolerance: float
) -> tuple[Tensor, Tensor]:
    r"""Newton's steps with the Jacobian at a known fixed point, for starts that it serves.

    A start goes on while each step at least halves the residual, which is where Newton's own
    method is sure to end at that point too; the speed of any other is infinite.
    """
    measured = vmap(lambda state: step(state) - state)
    inverse, singular = torch.linalg.inv_ex(jacrev(lambda state: step(state) - state)(root))
    points, speed = h.clone(), torch.full_like(h[:, 0], torch.inf)
    moving, r = torch.arange(len(h), device=h.device), measured(h)
    while len(moving) and not singular:
        proposed = points[moving] - r @ inverse.mT
        left = measured(proposed)
        before, after = _speed(r), _speed(left)
        points[moving] = proposed
        speed[moving] = torch.where(after <= tolerance, after, torch.inf)
        goes_on = (after > tolerance) & (after <= before / 4)
        moving, r = moving[goes_on], left[goes_on]
    return points, speed


def _chunk(
    step: Callable[[Tensor], Tensor], h: Tensor, tolerance: float, iterations: int
) -> Solved:
    def residual(state: Tensor) -> Tensor:
        return step(state) - state

    measured, linearised = vmap(residual), vmap(jacrev(residual))
    eye = torch.eye(h.shape[-1], dtype=h.dtype, device=h.device)
    points, r = h.clone(), measured(h)
    speed = _speed(r)
    settled = torch.zeros_like(speed, dtype=torch.bool)
    moving = speed.isfinite() & (speed > tolerance)
    damping = torch.full_like(speed, 1e-3)
    A = r.new_empty(len(h), h.shape[-1], h.shape[-1])
    age = torch.full_like(speed, -1, dtype=torch.long)  # steps since A was computed; -1 is never
    for _ in range(iterations):
        rows = moving.nonzero().squeeze(-1)
        if not len(rows):
            break
        outdated = rows[age[rows] < 0]
        if len(outdated):
            A[outdated] = linearised(points[outdated])
            age[outdated] = 0
        slope = (A[rows].mT @ r[rows].unsqueeze(-1)).squeeze(-1)
        normal = A[rows].mT @ A[rows] + damping[rows, None, None] * eye
        factor, failed = torch.linalg.cholesky_ex(normal)
        proposed = points[rows] - torch.cholesky_solve(slope.unsqueeze(-1), factor).squeeze(-1)
        left = measured(proposed)
        before, after = speed[rows], _speed(left)
        better = (after < before) & (failed == 0)
        gained = rows[better]
        points[gained], speed[gained], r[gained] = proposed[better], after[better], left[better]
        current = age[rows] == 0
        damping[rows] *= torch.where(better, 0.03, torch.where(current, 10.0, 1.0))
        damping.clamp_(min=1e-14)
        # a Jacobian that still brings a step far down is kept: the next costs no derivative
        age[rows] = torch.where(better & (after < 1e-3 * before), age[rows] + 1, -1)
        age[rows[current & ~better]] = 0
        # at a minimum of the speed the slope is zero, or no damping finds anything lower
        still = slope.norm(dim=-1) <= 1e-10 * (1 + A[rows].flatten(1).norm(dim=-1))
        stuck = rows[current & (still | (damping[rows] > 1e12)) & (speed[rows] > tolerance)]
        settled[stuck] = True
        moving[stuck] = False
        moving[rows] &= speed[rows] > tolerance
    return Solved(points, speed, settled | (speed <= tolerance))


def _speed(r: Tensor) -> Tensor:
    return 0.5 * (r * r).sum(-1)
