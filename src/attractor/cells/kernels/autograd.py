"""Kernels within autograd: as a function in eager mode, as an operator in a compiled graph."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils import _pytree as pytree

from attractor.cells.base import Cell, refill
from attractor.cells.kernels.calls import Tensors, backward, forward
from attractor.cells.kernels.operators import unroll
from attractor.cells.kernels.plan import Plan, Rows, as_cell, as_kernel
from attractor.cells.layer.ragged import Ragged
from attractor.cells.layer.unroll import unroll_rows


class Job(NamedTuple):
    """What is computed, apart from the tensors."""

    cell: Cell[Any, Any]
    ragged: Ragged | None
    every: bool
    empty: Any
    """A state whose tensors are all ``None``."""

    shapes: tuple[torch.Size, ...]
    turned: tuple[int, ...]


Result = tuple[Tensor, Tensors, Tensors]
"""Outputs as rows, last states, and the states of all rows or none."""


def run(job: Job, x: Tensor, plan: Plan, states: Sequence[Tensor], rows: Rows) -> Result:
    """A cell over all steps of x, with gradients to all that it reads."""
    given = (plan.x, *plan.weights, *states)
    keep = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in given)
    count, shown = len(states), len(job.shapes)
    made: Sequence[Tensor]
    if torch.compiler.is_compiling():
        made = unroll(plan, list(states), rows, keep=keep, every=job.every)
    elif keep:
        parameters = tuple(job.cell.parameters())
        kind = plan._replace(x=plan.x.detach()[:0], weights=(), own=None, loop=None)
        own = (x, *parameters)
        made = _Fused.apply(job, kind, rows, len(own), *own, *given)  # type: ignore[no-untyped-call]
    else:
        every = shown if job.every else 0
        done = forward(_dense(plan), _contiguous(states), rows, keep=False, every=every)
        made = (done.output, *done.last, *done.every)
    return made[0], tuple(made[1 : 1 + shown]), tuple(made[1 + count :][: shown * job.every])


def _dense(plan: Plan) -> Plan:
    weights = tuple(None if w is None else w.contiguous() for w in plan.weights)
    return plan._replace(x=plan.x.contiguous(), weights=weights)


def _contiguous(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [tensor.contiguous() for tensor in tensors]


class _Fused(torch.autograd.Function):
    """The kernel, whose gradients the kernel computes; the loop does so if they are to have some.

    Among the tensors are first, `own` of them, the input and parameters of the cell, which get the
    gradients of the loop, and then what the kernel reads, which gets the kernel's.
    """

    @staticmethod
    def forward(
        ctx: Any,
        job: Job,
        kind: Plan,
        rows: Rows,
        own: int,
        *tensors: Tensor | None,
    ) -> Tensors:
        ctx.job, ctx.kind, ctx.rows, ctx.own = job, kind, rows, own
        plan, states = _as_plan(kind, tensors[own:])
        every = len(job.shapes) if job.every else 0
        done = forward(_dense(plan), _contiguous(states), rows, keep=True, every=every)
        ctx.save_for_backward(done.tape, *tensors)
        ctx.set_materialize_grads(False)
        return (done.output, *done.last, *done.every)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        tape, *tensors = ctx.saved_tensors
        own, read = tensors[: ctx.own], tensors[ctx.own :]
        plan, states = _as_plan(ctx.kind, read)
        count, shown = len(states), len(ctx.job.shapes)
        if torch.is_grad_enabled():
            of_cell = (*grads[: 1 + shown], *grads[1 + count :])  # the kernel's own are not
            found = _loop_gradients(ctx.job, own[0], own[1:], states, of_cell)
            before = found[: len(own)]
            after = [None] * (len(read) - len(states)) + found[len(own) :]
        else:
            made = backward(
                _dense(plan),
                _contiguous(states),
                ctx.rows,
                tape,
                grads[0],
                grads[1 : 1 + count],
                grads[1 + count :],
                ctx.needs_input_grad[4 + len(own) :],
            )
            before = [None] * len(own)
            after = [made.x, *made.weights, *made.states]
        return (None, None, None, None, *before, *after)


def _as_plan(kind: Plan, read: Sequence[Tensor | None]) -> tuple[Plan, list[Tensor]]:
    """The plan and the states, from a plan without tensors and all that a kernel reads."""
    x, *rest = read
    count = len(rest) - len(kind.form.states)
    states = [state for state in rest[count:] if state is not None]
    assert x is not None
    return kind._replace(x=x, weights=tuple(rest[:count])), states


class _Loop(nn.Module):
    """The time loop as a module, whose parameters can be others."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.job = job
        self.cell = job.cell

    def forward(self, x: Tensor, states: list[Tensor]) -> list[Tensor]:
        job = self.job
        state = refill(job.empty, as_cell(states, job.shapes, job.turned))
        output, last, every = unroll_rows(self.cell, x, state, job.ragged, job.every)

        def as_rows(values: Tensor) -> Tensor:
            return values.flatten(0, 1) if job.ragged is None else values

        kept = [as_rows(one) for one in pytree.tree_leaves(every)]
        made = [as_kernel(part, job.turned) for part in (pytree.tree_leaves(last), kept)]
        return [as_rows(output), *made[0], *made[1]]


def _loop_gradients(
    job: Job,
    x: Tensor,
    parameters: Sequence[Tensor],
    states: Sequence[Tensor],
    grads: Sequence[Tensor | None],
) -> list[Tensor | None]:
    """Gradients of x, the parameters and the states, which have gradients themselves."""
    names = [f"cell.{name}" for name, _ in job.cell.named_parameters()]
    given = dict(zip(names, parameters, strict=True))
    made = functional_call(_Loop(job), given, (x, list(states)))
    pairs = [(m, g) for m, g in zip(made, grads, strict=True) if g is not None and m.requires_grad]
    inputs = [x, *parameters, *states]
    wanted = [tensor for tensor in inputs if tensor.requires_grad]
    found = torch.autograd.grad(
        [m for m, _ in pairs], wanted, [g for _, g in pairs], create_graph=True, allow_unused=True
    )
    by_input = iter(found)
    return [next(by_input) if tensor.requires_grad else None for tensor in inputs]
