"""A kernel run there and back on tensors, without autograd."""

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from attractor.cells.kernels.native import WEIGHTS, Call, empty, pointers, run
from attractor.cells.kernels.plan import Form, Plan, Rows

Tensors = tuple[Tensor, ...]


class Done(NamedTuple):
    """Outputs of all rows, last states, the states of all rows or none, and the tape or none."""

    output: Tensor
    last: Tensors
    every: Tensors
    tape: Tensor | None


class Gradients(NamedTuple):
    """Gradients of what a kernel was given; ``None`` where nobody wants one."""

    x: Tensor | None
    weights: tuple[Tensor | None, ...]
    states: tuple[Tensor | None, ...]


def forward(plan: Plan, states: Sequence[Tensor], rows: Rows, *, keep: bool, every: int) -> Done:
    """Run a kernel over all steps.

    Args:
        plan: the kernel and its tensors, contiguous and of one type.
        states: the initial state of each sequence.
        rows: how x falls into steps and sequences.
        keep: also return the tape, which `backward` needs.
        every: of how many states to return also what they are after each step.
    """
    form, x = plan.form, plan.x
    call, _held = _call(plan, states, rows)
    output = empty((x.shape[0], form.output), x)
    last = tuple(x.new_empty(rows.batch, size) for size in form.states)
    kept = tuple(empty((x.shape[0], size), x) for size in form.states[:every])
    width = run(form.kernel, call, "nowhere") if keep else 0
    tape = empty((x.shape[0], width), x) if keep else None
    call.output = output.data_ptr()
    call.last = pointers("states", last)
    call.every = pointers("states", kept)
    call.tape = None if tape is None else tape.data_ptr()
    run(form.kernel, call, "there")
    return Done(output, last, kept, tape)


def backward(
    plan: Plan,
    states: Sequence[Tensor],
    rows: Rows,
    tape: Tensor,
    d_output: Tensor | None,
    d_last: Sequence[Tensor | None],
    d_every: Sequence[Tensor | None],
    wanted: Sequence[bool],
) -> Gradients:
    """Run it back, for what `wanted` says of x, the weights and the states, in this order."""
    call, _held = _call(plan, states, rows)
    given = [None if d is None else _dense(d) for d in (d_output, *d_last, *d_every)]
    count = len(d_last)
    every = iter(wanted)
    d_x = empty(plan.x.shape, plan.x) if next(every) else None
    made = [
        torch.empty_like(t, memory_format=torch.contiguous_format)
        if next(every) and t is not None
        else None
        for t in (*plan.weights, *states)
    ]
    d_weights, d_states = made[: len(plan.weights)], made[len(plan.weights) :]
    call.tape = tape.data_ptr()
    call.d_output = None if given[0] is None else given[0].data_ptr()
    call.d_last = pointers("states", given[1 : 1 + count])
    call.d_every = pointers("states", given[1 + count :])
    call.d_x = None if d_x is None else d_x.data_ptr()
    call.d_weight = pointers("weights", d_weights)
    call.d_state = pointers("states", d_states)
    run(plan.form.kernel, call, "back")
    return Gradients(d_x, tuple(d_weights), tuple(d_states))


def _dense(gradient: Tensor) -> Tensor:
    """As ``contiguous``, in memory that is kept: the gradient of a sum is one number at first."""
    if gradient.is_contiguous():
        return gradient
    return empty(gradient.shape, gradient).copy_(gradient)


def tape_width(form: Form, x: Tensor, present: Sequence[bool]) -> int:
    """Numbers per row of the tape, which depend on sizes and on which weights are present."""
    call = Call(bytes=x.element_size())
    call.weight = (ctypes.c_void_p * WEIGHTS)(*[1 if there else None for there in present])
    _say_sizes(call, form, x.shape[1])
    return run(form.kernel, call, "nowhere")


def _say_sizes(call: Call, form: Form, inputs: int) -> None:
    for index, size in enumerate((inputs, *form.sizes)):
        call.size[index] = size
    for index, number in enumerate(form.numbers):
        call.number[index] = number


def _call(plan: Plan, states: Sequence[Tensor], rows: Rows) -> tuple[Call, object]:
    """What both directions say; the second part must live as long as the call."""
    form, x = plan.form, plan.x
    call = Call(
        bytes=x.element_size(),
        threads=torch.get_num_threads(),
        steps=rows.steps,
        batch=rows.batch,
        rows=x.shape[0],
        x=x.data_ptr(),
        weight=pointers("weights", plan.weights),
        state=pointers("states", states),
        constants=None if plan.constants is None else plan.constants.data_ptr(),
        noise=None if plan.noise is None else plan.noise.data_ptr(),
    )
    _say_sizes(call, form, x.shape[1])
    for index, keep in enumerate(plan.keep):
        if isinstance(keep, Tensor):
            call.keep[index] = keep.data_ptr()
        else:
            call.keep_rate[index] = keep
    held = None
    if rows.running is not None:
        held = (ctypes.c_int64 * rows.steps)(*rows.running)
        call.running = ctypes.addressof(held)
    return call, held
