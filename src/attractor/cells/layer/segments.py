"""Time against memory: a sequence in segments that are computed again on the way back."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import checkpoint

from attractor.cells.base import Cell, map_state
from attractor.cells.layer.ragged import Ragged
from attractor.cells.layer.unroll import Unrolled
from attractor.errors import InputError

Run = Callable[[Tensor, Any], Unrolled]
"""From some steps of the input and the state before them to what a cell made of them."""


def in_segments(run: Run, x: Tensor, state: Any, steps: int) -> Unrolled:
    """As ``run(x, state)``, but of all steps only the state before each segment is kept.

    Args:
        run: the time loop.
        x: the input ``(time, batch, features)``.
        state: the state to start from.
        steps: the length of a segment; about the root of the length of x needs least memory.

    Example:
        >>> from attractor.cells.layer.unroll import unroll
        >>> from attractor.cells import LSTMCell
        >>> cell = LSTMCell(3, 8)
        >>> run = lambda x, state: unroll(cell, cell.prepare(x), state)
        >>> in_segments(run, torch.zeros(10, 2, 3), cell.initial_state(2), steps=4).output.shape
        torch.Size([10, 2, 8])
    """
    pieces = []
    for segment in torch.split(x, steps):
        leaves, spec = pytree.tree_flatten(state)

        def step(segment: Tensor, *leaves: Tensor, spec: Any = spec) -> Unrolled:
            return run(segment, pytree.tree_unflatten(list(leaves), spec))

        piece: Unrolled = checkpoint(step, segment, *leaves, use_reentrant=False)
        state = piece.state
        pieces.append(piece)
    states = map_state(lambda *s: torch.cat(s), *(piece.states for piece in pieces))
    return Unrolled(torch.cat([piece.output for piece in pieces]), state, states)


def check_divisible(cell: Cell[Any, Any], ragged: Ragged | None) -> None:
    """Raise unless a sequence can be read in pieces, each without a look at the others."""
    if ragged is not None:
        raise InputError(
            "checkpoint_every expects sequences of one length, but got a PackedSequence. Try "
            "padding, or checkpoint_every=0."
        )
    check_pieces("checkpoint_every", cell, "checkpoint_every=0")


def check_pieces(what: str, module: nn.Module, instead: str) -> None:
    """Raise unless every cell of a module makes the same of a sequence and of its pieces.

    Args:
        what: whom the message names: what reads in pieces.
        module: the cell, or what holds it.
        instead: what to try in place of reading in pieces.
    """
    for part in module.modules():
        if isinstance(part, Cell) and part.sees_whole_sequence:
            raise InputError(
                f"{what} expects a cell that can read a sequence in pieces, but "
                f"{type(part).__name__} prepares it as a whole. Try {instead}, length= for a "
                "DecayNet, no anneal= for a D-NTM, or per='step' for recurrent dropout."
            )
