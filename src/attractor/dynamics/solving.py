"""Levenberg-Marquardt from many starts at once, on the speed of a system."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.func import jacrev, vmap

BYTES = 2**22
"""What the Jacobians of one chunk of starts may take."""


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
    with every one that does not. Starts are taken in chunks, so memory is bounded.
    """
    size = starts.shape[-1]
    rows = max(1, BYTES // (starts.element_size() * size * size))
    solved = [_chunk(step, part, tolerance, iterations) for part in torch.split(starts, rows)]
    return Solved(*(torch.cat(parts) for parts in zip(*solved, strict=True)))


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
