"""A recurrent rule by its kernel: layers of LSTM and the sum that reads them, in one pass.

Coordinates lie side by side in a kernel, so it wants a state unit by unit: ``(learners,
coordinates, units)`` in the memory of ``(learners, units, coordinates)``. A state of another layout
is copied into that one; what a kernel returns has it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from attractor.cells.kernels.fused import unwatched
from attractor.cells.kernels.native import STATUS, Call, empty, pointers, run
from attractor.cells.kernels.plan import uniform
from attractor.optimisers.rules.preprocess import preprocess

LARGEST = 80.0
"""Of p: beyond it the bounds of what counts as a small gradient leave the range of a float."""

Tensors = tuple[Tensor | None, ...]


class Weights(NamedTuple):
    """Of each layer W, U and b with the gates i, f, a, o; of the sum its weights and bias, if any.

    Shape:
        W ``(4 units, inputs)``, U ``(4 units, units)``, b ``(4 units,)``; the sum's ``(1, units)``
        and ``(1,)``. Without a sum the last layer has one unit, which is the output.
    """

    layers: tuple[tuple[Tensor, Tensor, Tensor], ...]
    head: tuple[Tensor | None, Tensor | None] = (None, None)

    def flat(self) -> Tensors:
        """As the kernel wants them: two layers, and null for what is not there."""
        layers = [*self.layers, *[(None, None, None)] * (2 - len(self.layers))]
        return (*(w for layer in layers for w in layer), *self.head)


def has_kernel(layers: int) -> bool:
    """Whether there is a kernel for so many layers of LSTM on this machine.

    Example:
        >>> has_kernel(3)
        False
    """
    return STATUS.path is not None and 1 <= layers <= 2


def step(
    weights: Weights,
    grads: Tensor,
    states: Sequence[Tensor],
    p: float,
    *,
    overwrite: bool = False,
) -> tuple[Tensor, list[Tensor]] | None:
    """The sums of a step and the new states, or None where there is no kernel for it.

    Args:
        weights: of the layers and the sum.
        grads: what the layers read, by `preprocess`; nobody wants a gradient of them.
        states: h and c of each layer.
        p: of `preprocess`.
        overwrite: without a graph, write the new states over the old ones.

    Shape:
        grads and the sums ``(learners, coordinates)``, states ``(learners, coordinates, units)``.
    """
    flat = weights.flat()
    given = [grads, *states, *(w for w in flat if w is not None)]
    graph = torch.is_grad_enabled() and any(t.requires_grad for t in given)
    if (
        not has_kernel(len(weights.layers))
        or not grads.numel()
        or p > LARGEST
        or (graph and grads.requires_grad)
        or torch.compiler.is_compiling()
        or not unwatched()
        or not uniform(given)
    ):
        return None
    if graph:
        output, *last = _Step.apply(p, grads, len(states), *states, *flat)  # type: ignore[no-untyped-call]
        return output, last
    rows = _by_units(states)
    reuse = overwrite and all(
        r.data_ptr() == s.data_ptr() for r, s in zip(rows, states, strict=True)
    )
    last = (
        rows
        if reuse
        else [torch.empty_like(r, memory_format=torch.contiguous_format) for r in rows]
    )
    call, _held = _call(p, grads, rows, last, flat)
    output = torch.empty_like(grads, memory_format=torch.contiguous_format)
    call.output = output.data_ptr()
    run("stack", call, "there")
    return output, list(states) if reuse else [t.mT for t in last]


def _by_units(states: Sequence[Tensor]) -> list[Tensor]:
    """States as ``(learners, units, coordinates)``, with one distance from unit to unit in all."""
    rows = [state.mT for state in states]
    apart = rows[0].stride(1)
    if all(
        r.stride(2) == 1
        and (r.stride(1) == apart or r.shape[1] == 1)
        and (r.stride(0) == apart * r.shape[1] or len(r) == 1)
        for r in rows
    ):
        return rows
    return [r.contiguous() for r in rows]


def _call(
    p: float, grads: Tensor, rows: Sequence[Tensor], last: Sequence[Tensor], flat: Tensors
) -> tuple[Call, object]:
    """What both directions say; the second part must live as long as the call."""
    dense = [grads.contiguous(), *(None if w is None else w.contiguous() for w in flat)]
    x, *weights = dense
    assert x is not None
    call = Call(
        bytes=x.element_size(),
        threads=torch.get_num_threads(),
        steps=1,
        batch=x.shape[0],
        rows=x.shape[1],
        x=x.data_ptr(),
        weight=pointers("weights", weights),
        state=pointers("states", rows),
        last=pointers("states", last),
    )
    units = [r.shape[1] for r in rows[::2]]
    apart = (max((t.stride(1) for t in tensors), default=0) for tensors in (rows, last))
    for index, size in enumerate((2, *units, *[0] * (2 - len(units)), *apart)):
        call.size[index] = size
    call.number[0] = p
    return call, dense


class _Step(torch.autograd.Function):
    """A step whose gradients the kernel computes, or torch if they are to have gradients."""

    @staticmethod
    def forward(ctx: Any, p: float, grads: Tensor, count: int, *tensors: Tensor | None) -> Any:
        ctx.p, ctx.count = p, count
        ctx.set_materialize_grads(False)
        states, flat = [t for t in tensors[:count] if t is not None], tensors[count:]
        rows = _by_units(states)
        last = [empty(r.shape, r) for r in rows]
        call, _held = _call(p, grads, rows, last, flat)
        tape = empty((run("stack", call, "nowhere"),), grads)
        output = torch.empty_like(grads, memory_format=torch.contiguous_format)
        call.output, call.tape = output.data_ptr(), tape.data_ptr()
        run("stack", call, "there")
        ctx.save_for_backward(grads, tape, *tensors)
        return (output, *(t.mT for t in last))

    @staticmethod
    def backward(ctx: Any, d_output: Tensor | None, *d_last: Tensor | None) -> Any:
        grads, tape, *read = ctx.saved_tensors
        if torch.is_grad_enabled():
            return (
                None,
                None,
                None,
                *_plain_gradients(ctx.p, grads, read, ctx.count, d_output, d_last),
            )
        rows, flat = _by_units(read[: ctx.count]), read[ctx.count :]
        call, _held = _call(ctx.p, grads, rows, [], flat)  # new states are made again of the old
        given = [None if d is None else d.mT.contiguous() for d in d_last]
        wanted = iter(ctx.needs_input_grad[3:])
        d_states = [empty(r.shape, r) if next(wanted) else None for r in rows]
        d_weights = [
            torch.empty_like(w, memory_format=torch.contiguous_format)
            if next(wanted) and w is not None
            else None
            for w in flat
        ]
        top = None if d_output is None else d_output.contiguous()
        call.tape = tape.data_ptr()
        call.d_output = None if top is None else top.data_ptr()
        call.d_last = pointers("states", given)
        call.d_state = pointers("states", d_states)
        call.d_weight = pointers("weights", d_weights)
        run("stack", call, "back")
        return None, None, None, *(None if d is None else d.mT for d in d_states), *d_weights


def _plain_gradients(
    p: float,
    grads: Tensor,
    read: Sequence[Tensor | None],
    count: int,
    d_output: Tensor | None,
    d_last: Sequence[Tensor | None],
) -> list[Tensor | None]:
    """Gradients of the states and weights, which have gradients themselves."""
    made = plain(p, grads, read[:count], read[count:])
    pairs = [(m, d) for m, d in zip(made, (d_output, *d_last), strict=True) if d is not None]
    wanted = [t for t in read if t is not None and t.requires_grad]
    found = iter(
        torch.autograd.grad(
            [m for m, _ in pairs],
            wanted,
            [d for _, d in pairs],
            create_graph=True,
            allow_unused=True,
        )
    )
    return [next(found) if t is not None and t.requires_grad else None for t in read]


def plain(p: float, grads: Tensor, states: Any, flat: Any) -> list[Tensor]:
    """What the kernel computes, by torch."""
    h, last = preprocess(grads, p), []
    for layer, (before, c) in enumerate(zip(states[::2], states[1::2], strict=True)):
        W, U, b = flat[3 * layer : 3 * layer + 3]
        i, f, a, o = (F.linear(h, W, b) + F.linear(before, U)).chunk(4, dim=-1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(a)
        h = torch.sigmoid(o) * torch.tanh(c)
        last += [h, c]
    weight, bias = flat[6:]
    return [(h if weight is None else F.linear(h, weight, bias)).squeeze(-1), *last]
