"""The matrix of a product of rotations from its angles, by a kernel, with gradients to them."""

from typing import Any

import torch
from torch import Tensor

from attractor.cells.kernels.native import Call, pointers, run
from attractor.cells.rotations import DENSE


def turns(
    size: int,
    capacity: int | None,
    theta: Tensor,
    phi: Tensor | None = None,
    omega: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """As `attractor.cells.rotations.matrix`, of a complex one its left and its right half.

    Shape:
        ``(size, size)``, or twice ``(2 * size, size)``.
    """
    made: tuple[Tensor, ...] = _Rotation.apply(size, capacity or 0, theta, phi, omega)  # type: ignore[no-untyped-call]
    return made


def turnable(size: int) -> bool:
    """Whether the whole matrix is better than layer after layer; a traced graph keeps to those."""
    return size <= DENSE and not torch.compiler.is_compiling()


class _Rotation(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, size: int, capacity: int, theta: Tensor, phi: Tensor | None, omega: Tensor | None
    ) -> tuple[Tensor, ...]:
        angles = [None if angle is None else angle.contiguous() for angle in (theta, phi, omega)]
        parts = 1 if phi is None else 2
        made = [theta.new_empty(parts * size, size) for _ in range(parts)]
        call = _call(size, capacity, angles)
        call.last = pointers("states", made)
        run("rotation", call, "there")
        ctx.size, ctx.capacity = size, capacity
        ctx.save_for_backward(made[0], *angles)
        ctx.set_materialize_grads(False)
        return tuple(made)

    @staticmethod
    @torch.autograd.function.once_differentiable  # a gradient of gradients is the loop's
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        made, *angles = ctx.saved_tensors
        given = [None if grad is None else grad.contiguous() for grad in grads]
        found = [None if angle is None else torch.empty_like(angle) for angle in angles]
        call = _call(ctx.size, ctx.capacity, angles)
        call.state = pointers("states", [made])
        call.d_last = pointers("states", given)
        call.d_weight = pointers("weights", found)
        run("rotation", call, "back")
        return (None, None, *found)


def _call(size: int, capacity: int, angles: list[Tensor | None]) -> Call:
    assert angles[0] is not None
    call = Call(bytes=angles[0].element_size(), weight=pointers("weights", angles))
    call.size[1], call.size[2] = size, capacity
    return call
