"""Kernels as torch's own operators, which torch.compile keeps in its graphs as they are."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attractor.cells.kernels import calls
from attractor.cells.kernels.plan import Form, Plan, Rows


def unroll(
    plan: Plan, states: list[Tensor], rows: Rows, *, keep: bool, every: bool
) -> list[Tensor]:
    """Outputs as rows, last states, then the states of all rows and the tape, if asked for."""
    form = plan.form
    made: list[Tensor] = torch.ops.attractor.unroll(
        *_flat(form),
        [weight is not None for weight in plan.weights],
        plan.x,
        [weight for weight in plan.weights if weight is not None],
        plan.constants,
        states,
        *rows[:2],
        keep,
        every,
    )
    return made


def _flat(form: Form) -> tuple[str, int, list[int], list[int], list[float]]:
    # never empty: an empty list would be taken for one of tensors
    numbers = [*form.numbers, 0.0]
    return form.kernel, form.output, list(form.states), list(form.sizes), numbers


def _plan(
    kernel: str,
    output: int,
    state_sizes: Sequence[int],
    sizes: Sequence[int],
    numbers: Sequence[float],
    present: Sequence[bool],
    x: Tensor,
    weights: Sequence[Tensor],
    constants: Tensor | None,
) -> Plan:
    form = Form(kernel, output, tuple(state_sizes), tuple(sizes), tuple(numbers))
    return Plan(form, x.contiguous(), _in_places(present, weights), constants)


def _in_places(present: Sequence[bool], weights: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
    """The weights where a kernel looks for them; a list of an operator has no gaps."""
    given = iter(weights)
    return tuple(next(given).contiguous() if there else None for there in present)


@torch.library.custom_op("attractor::unroll", mutates_args=())
def _unroll(
    kernel: str,
    output: int,
    state_sizes: Sequence[int],
    sizes: Sequence[int],
    numbers: Sequence[float],
    present: Sequence[bool],
    x: Tensor,
    weights: Sequence[Tensor],
    constants: Tensor | None,
    states: Sequence[Tensor],
    steps: int,
    batch: int,
    keep: bool,
    every: bool,
) -> list[Tensor]:
    plan = _plan(kernel, output, state_sizes, sizes, numbers, present, x, weights, constants)
    dense = [state.contiguous() for state in states]
    count = len(dense) if every else 0
    done = calls.forward(plan, dense, Rows(steps, batch, None), keep=keep, every=count)
    tape = () if done.tape is None else (done.tape,)
    return [done.output, *done.last, *done.every, *tape]


@_unroll.register_fake
def _(
    kernel: str,
    output: int,
    state_sizes: Sequence[int],
    sizes: Sequence[int],
    numbers: Sequence[float],
    present: Sequence[bool],
    x: Tensor,
    weights: Sequence[Tensor],
    constants: Tensor | None,
    states: Sequence[Tensor],
    steps: int,
    batch: int,
    keep: bool,
    every: bool,
) -> list[Tensor]:
    form = Form(kernel, output, tuple(state_sizes), tuple(sizes), tuple(numbers))
    rows = x.shape[0]
    made = [x.new_empty(rows, output)]
    made += [x.new_empty(batch, size) for size in state_sizes]
    made += [x.new_empty(rows, size) for size in state_sizes if every]
    if keep:
        made.append(x.new_empty(rows, calls.tape_width(form, x, present)))
    return made


@torch.library.custom_op("attractor::unroll_back", mutates_args=())
def _back(
    kernel: str,
    output: int,
    state_sizes: Sequence[int],
    sizes: Sequence[int],
    numbers: Sequence[float],
    present: Sequence[bool],
    x: Tensor,
    weights: Sequence[Tensor],
    constants: Tensor | None,
    states: Sequence[Tensor],
    steps: int,
    batch: int,
    tape: Tensor,
    grads: Sequence[Tensor | None],
    wanted: Sequence[bool],
) -> list[Tensor]:
    plan = _plan(kernel, output, state_sizes, sizes, numbers, present, x, weights, constants)
    count = len(states)
    found = calls.backward(
        plan,
        [state.contiguous() for state in states],
        Rows(steps, batch, None),
        tape,
        grads[0],
        grads[1 : 1 + count],
        grads[1 + count :],
        _spread(present, wanted),
    )
    return [t for t in (found.x, *found.weights, *found.states) if t is not None]


def _spread(present: Sequence[bool], wanted: Sequence[bool]) -> list[bool]:
    """What is wanted of x, of the weights that are there, and of the states, with the gaps."""
    given = iter(wanted)
    return [next(given), *(there and next(given) for there in present), *given]


@_back.register_fake
def _(
    kernel: str,
    output: int,
    state_sizes: Sequence[int],
    sizes: Sequence[int],
    numbers: Sequence[float],
    present: Sequence[bool],
    x: Tensor,
    weights: Sequence[Tensor],
    constants: Tensor | None,
    states: Sequence[Tensor],
    steps: int,
    batch: int,
    tape: Tensor,
    grads: Sequence[Tensor | None],
    wanted: Sequence[bool],
) -> list[Tensor]:
    read = zip((x, *weights, *states), wanted, strict=True)
    return [t.new_empty(t.shape) for t, asked in read if asked]


def _setup(ctx: Any, inputs: tuple[Any, ...], output: list[Tensor]) -> None:
    *form, x, weights, constants, states, steps, batch, keep, every = inputs
    ctx.form, ctx.size, ctx.every = form, (steps, batch), every
    ctx.count = len(weights)
    ctx.save_for_backward(output[-1] if keep else None, constants, x, *weights, *states)


def _gradients(ctx: Any, grads: list[Tensor | None]) -> tuple[Any, ...]:
    tape, constants, x, *rest = ctx.saved_tensors
    weights, states = rest[: ctx.count], rest[ctx.count :]
    wanted = [t.requires_grad for t in (x, *rest)]
    found = iter(
        torch.ops.attractor.unroll_back(
            *ctx.form, x, weights, constants, states, *ctx.size, tape, grads[:-1], wanted
        )
    )
    all_ = [next(found) if asked else None for asked in wanted]
    of_weights, of_states = all_[1 : 1 + ctx.count], all_[1 + ctx.count :]
    nothing = (None,) * len(ctx.form)
    return (*nothing, all_[0], of_weights, None, of_states, None, None, None, None)


_unroll.register_autograd(_gradients, setup_context=_setup)
