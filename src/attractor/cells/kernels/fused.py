"""A cell over time in one kernel, where it has one: what `Recurrent` asks before it loops."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils import _pytree as pytree

from attractor.cells.base import Cell, map_state, parameter_sizes, refill
from attractor.cells.kernels.autograd import Job, run
from attractor.cells.kernels.native import STATUS
from attractor.cells.kernels.plan import Rows, as_cell, as_kernel, uniform
from attractor.cells.kernels.table import KERNELS
from attractor.cells.layer.ragged import Ragged
from attractor.cells.layer.unroll import Unrolled, exporting

METHODS = ("step", "prepare", "prepare_ragged", "read", "candidate", "carried", "masks")
"""What a kernel stands for; somebody may have replaced one, on a cell or on its class."""


def _methods(kind: type[Cell[Any, Any]]) -> list[Any]:
    return [getattr(kind, name, None) for name in METHODS]


ORIGINAL = {kind: _methods(kind) for kind in KERNELS}


def fused(
    cell: Cell[Any, Any], x: Tensor, state: Any, ragged: Ragged | None, return_states: bool
) -> Unrolled | None:
    """What `unroll_rows` would return, or ``None`` if there is no kernel for this.

    Args:
        cell: the cell.
        x: the input ``(time, batch, features)``, or the rows of ragged sequences.
        state: the state to start from.
        ragged: how rows fall into sequences, or ``None``.
        return_states: also return the states after each step.
    """
    planner = KERNELS.get(type(cell))
    if planner is None or not x.numel() or not uniform([x]) or not _suits(cell, ragged):
        return None  # before a plan draws noise that the loop would draw again
    leaves, empty = pytree.tree_leaves(state), map_state(lambda _: None, state)
    if ragged is None:
        flat, rows, lengths = x.flatten(0, 1), Rows(x.shape[0], x.shape[1], None), None
    else:
        flat, rows, lengths = x, Rows(ragged.steps, ragged.batch, ragged.running), ragged.lengths
    plan = planner(cell, flat, rows, lengths)
    if plan is None:
        return None
    own = () if plan.own is None else plan.own(leaves)
    weights = [weight for weight in plan.weights if weight is not None]
    if not uniform([x, *leaves, *own, *weights]):
        return None
    if torch.compiler.is_compiling() and (plan.keep or own or plan.noise is not None):
        return None
    shapes = tuple(leaf.shape[1:] for leaf in leaves)
    job = Job(plan.loop or cell, ragged, return_states, empty, shapes, plan.turned)
    given = as_kernel(leaves, plan.turned)
    output, last, every = run(job, x, plan, [*given, *own], rows)

    def by_time(values: Tensor) -> Tensor:
        return values.view(rows.steps, rows.batch, *values.shape[1:]) if ragged is None else values

    def whole(states: Sequence[Tensor]) -> list[Tensor]:
        return as_cell(states, shapes, plan.turned)

    states = refill(empty, [by_time(one) for one in whole(every)]) if every else ()
    return Unrolled(by_time(output), refill(empty, whole(last)), states)


def _suits(cell: Cell[Any, Any], ragged: Ragged | None) -> bool:
    """Whether a kernel can stand in for the loop, as far as that does not depend on tensors."""
    if STATUS.path is None or cell.chunk:
        return False
    if torch.compiler.is_compiling():
        return not exporting() and ragged is None
    resized = cell.made_of is not None and cell.made_of != parameter_sizes(cell)
    return untouched(cell) and unwatched() and not resized


def unwatched() -> bool:
    """Whether nothing but plain autograd wants to see what is computed."""
    return not (
        torch.is_autocast_enabled("cpu")
        or torch._C._get_tracing_state() is not None
        or forward_ad._current_level >= 0
        or torch._C._are_functorch_transforms_active()
    )


def untouched(cell: Cell[Any, Any]) -> bool:
    """Whether the methods of a cell, and of one within it, are those that kernels stand for."""
    return all(
        ORIGINAL.get(type(part)) == _methods(type(part)) and vars(part).keys().isdisjoint(METHODS)
        for part in cell.modules()
        if isinstance(part, Cell)
    )
