"""The time loop: a cell over prepared input, for full batches and for ragged ones."""

from collections.abc import Callable, Sequence
from functools import cache
from types import CodeType
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._C._dynamo.eval_frame import reset_code
from torch.utils import _pytree as pytree

from attractor.cells.base import Cell, autocasts, is_shared, map_state, map_steps
from attractor.cells.layer.ragged import Ragged


class Unrolled(NamedTuple):
    """What a cell did over time: outputs, the last state, the states after each step or ``()``."""

    output: Tensor
    state: Any
    states: Any


def unroll(
    cell: Cell[Any, Any], prepared: Any, state: Any, *, return_states: bool = False
) -> Unrolled:
    """Step through time.

    Args:
        cell: what to step.
        prepared: what ``cell.prepare`` returned, each tensor ``(time, batch, ...)`` or `Shared`.
        state: the state to start from.
        return_states: also collect the state after each step, each tensor ``(time, batch, ...)``.

    Example:
        >>> from attractor.cells import LSTMCell
        >>> cell = LSTMCell(3, 8)
        >>> out = unroll(cell, cell.prepare(torch.zeros(5, 2, 3)), cell.initial_state(2))
        >>> out.output.shape
        torch.Size([5, 2, 8])
    """
    if exporting() or (torch.compiler.is_compiling() and not torch.is_grad_enabled()):
        # not for training: inductor may reuse the memory of scan's gradients while they are in it
        return _scan(cell, prepared, state, return_states)
    if cell.chunk and cell.training:
        return _in_chunks(cell, prepared, state, return_states)
    return _loop(cell, prepared, state, return_states)


def unroll_rows(
    cell: Cell[Any, Any], x: Tensor, state: Any, ragged: Ragged | None, return_states: bool
) -> Unrolled:
    """The time loop from the input on.

    Shape:
        x ``(time, batch, features)``; of ragged sequences x, the outputs and the states of all
        steps are rows.
    """
    if ragged is None:
        return unroll(cell, cell.prepare(x), state, return_states=return_states)
    prepared = cell.prepare_ragged(ragged.pad(x), ragged.lengths)
    sizes = list(ragged.running)
    output, last, states = unroll_ragged(cell, prepared, state, sizes, return_states=return_states)
    return Unrolled(ragged.pack(output), last, map_state(ragged.pack, states))


def exporting() -> bool:
    """Whether torch.export is tracing; a torch that cannot tell (2.6) takes compiling for it."""
    asked = getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)
    return bool(asked())


def _loop(cell: Cell[Any, Any], prepared: Any, state: Any, return_states: bool) -> Unrolled:
    timed, join = _timed(prepared)
    start = state
    lowered = autocasts(timed[0].device.type)
    outputs, states = [], []
    # unbind, not indexing: the gradient of an index is a zero tensor as long as the sequence
    for now in zip(*(part.unbind(0) for part in timed), strict=True):
        output, state = cell.step(join(now), state)
        if lowered:
            state = _in_dtype_of(start, state)
        outputs.append(output)
        if return_states:  # otherwise, without gradients, each state is gone after its step
            states.append(state)
    collected = map_state(lambda *s: torch.stack(s), *states) if return_states else ()
    return Unrolled(torch.stack(outputs), state, collected)


def _timed(prepared: Any) -> tuple[list[Tensor], Callable[[Sequence[Tensor]], Any]]:
    """The tensors of a prepared input that have time, and what puts pieces of them in place."""
    leaves, spec = pytree.tree_flatten(prepared, is_leaf=is_shared)

    def join(pieces: Sequence[Tensor]) -> Any:
        rest = iter(pieces)
        parts = [leaf if is_shared(leaf) else next(rest) for leaf in leaves]
        return pytree.tree_unflatten(parts, spec)

    return [leaf for leaf in leaves if not is_shared(leaf)], join


def compile_steps(module: nn.Module, steps: int = 10) -> nn.Module:
    """Let every cell in a module train several time steps at a time as one compiled function.

    Each kind of cell and shape of batch is compiled once, whatever the length of the sequences, and
    kept on disk for the next process. Only training is compiled. What it gains and costs is
    measured in ``docs/cells.md``.

    Args:
        module: a layer, or any model with layers in it; it is changed, and returned.
        steps: how many steps are one function; 0 switches this off. More are faster, and take
            longer to compile: 30 are worth it for runs of more than some ten thousand updates.

    Example:
        >>> from attractor.cells import Recurrent
        >>> layer = compile_steps(Recurrent("nru", 3, 8), steps=5)
    """
    for part in module.modules():
        if isinstance(part, Cell):
            part.chunk = steps
    return module


def _in_chunks(cell: Cell[Any, Any], prepared: Any, state: Any, return_states: bool) -> Unrolled:
    timed, join = _timed(prepared)
    pieces = []
    # by default a ninth kind or size of cell in one process is refused
    with torch._dynamo.config.patch(recompile_limit=1024):
        for parts in zip(*(torch.split(part, cell.chunk) for part in timed), strict=True):
            # the last, shorter piece is not worth a compilation of its own
            run = _compiled_loop() if parts[0].shape[0] == cell.chunk else _loop
            piece = run(cell, join(parts), state, return_states)
            state = piece.state
            pieces.append(piece)
    states = map_state(lambda *s: torch.cat(s), *(piece.states for piece in pieces))
    return Unrolled(torch.cat([piece.output for piece in pieces]), state, states)


@cache
def _compiled_loop() -> Callable[..., Unrolled]:
    """Made when first used: the compiler's import takes as long as torch's own."""
    return torch.compile(_loop, fullgraph=True)


def _scan(cell: Cell[Any, Any], prepared: Any, state: Any, return_states: bool) -> Unrolled:
    """The same loop as one operator, which torch.export and torch.compile keep for any length."""
    from torch._higher_order_ops.scan import scan

    carry, spec = pytree.tree_flatten(state)

    timed, join = _timed(prepared)

    def step(carry: list[Tensor], now: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        output, new = cell.step(join(now), pytree.tree_unflatten(carry, spec))
        # cloned because scan refuses results that share memory
        leaves = [leaf.clone() for leaf in pytree.tree_leaves(_in_dtype_of(state, new))]
        kept = [leaf.clone() for leaf in leaves] if return_states else []
        return leaves, [output.clone(), *kept]

    if not torch.compiler.is_dynamo_compiling():
        _forget_guards(scan)
    last, (output, *kept) = scan(step, [leaf.clone() for leaf in carry], timed)
    states = pytree.tree_unflatten(kept, spec) if return_states else ()
    return Unrolled(output, pytree.tree_unflatten(last, spec), states)


def _forget_guards(function: Callable[..., Any]) -> None:
    """Drop what torch compiled inside `function`: asking whether it fits would fix a dynamic size.

    An export with a batch of 2 would else make the next one fail, whose batch is dynamic.
    """
    for constant in function.__code__.co_consts:
        if isinstance(constant, CodeType):
            reset_code(constant)


def _in_dtype_of(start: Any, state: Any) -> Any:
    """Keep a state's type from step to step, also where autocast lowers what a step returns."""
    return map_state(lambda s, like: s.to(like.dtype), state, start)


def unroll_ragged(
    cell: Cell[Any, Any],
    prepared: Any,
    state: Any,
    batch_sizes: list[int],
    *,
    return_states: bool = False,
) -> Unrolled:
    """As `unroll`, for sequences sorted from long to short, of which some end early.

    Time is cut where sequences end. Each piece is a full batch of those that are still running,
    so every row is computed as if it were alone; outputs and states after its end are zero.

    Args:
        batch_sizes: how many sequences are running at each step, as in ``PackedSequence``.
    """
    total = batch_sizes[0]
    outputs, collected, finished = [], [], []
    start = 0
    while start < len(batch_sizes):
        rows = batch_sizes[start]
        stop = start + batch_sizes[start:].count(rows)
        piece = map_steps(lambda p, a=start, b=stop, n=rows: p[a:b, :n], prepared)
        running = map_state(lambda s, n=rows: s[:n], state)
        output, state, states = unroll(cell, piece, running, return_states=return_states)
        remaining = batch_sizes[stop] if stop < len(batch_sizes) else 0
        if remaining < rows:
            finished.append(map_state(lambda s, n=remaining: s[n:], state))
        outputs.append(_pad_rows(output, total))
        collected.append(map_state(lambda s: _pad_rows(s, total), states))
        start = stop
    last = map_state(lambda *s: torch.cat(s), *reversed(finished))
    kept = map_state(lambda *s: torch.cat(s), *collected) if return_states else ()
    return Unrolled(torch.cat(outputs), last, kept)


def _pad_rows(x: Tensor, rows: int) -> Tensor:
    """Add zero rows to the batch dimension of ``(time, batch, ...)``."""
    return F.pad(x, (0, 0) * (x.dim() - 2) + (0, rows - x.shape[1]))
