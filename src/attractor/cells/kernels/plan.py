"""What a kernel is given: which one, its sizes, and the tensors that it reads."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attractor.cells.base import Cell


class Form(NamedTuple):
    """All of a plan but its tensors.

    ``sizes`` starts with the units; what follows, and what ``numbers`` are, each kernel says.
    """

    kernel: str
    output: int
    states: tuple[int, ...]
    sizes: tuple[int, ...]
    numbers: tuple[float, ...] = ()


class Plan(NamedTuple):
    """A cell as its kernel takes it.

    ``x`` has one row per step and sequence. ``weights`` begins with the matrix of the input and its
    bias; without a matrix x is already what it would make.
    """

    form: Form
    x: Tensor
    weights: tuple[Tensor | None, ...]
    constants: Tensor | None = None
    """One number per sequence."""

    keep: tuple[Tensor | float, ...] = ()
    """Zoneout: how much of each state is kept, as rows or the same everywhere."""

    noise: Tensor | None = None
    """What was drawn beforehand, as rows."""

    own: Callable[[Sequence[Tensor]], tuple[Tensor, ...]] | None = None
    """From the states of the cell to others, which the kernel carries along behind them."""

    turned: tuple[int, ...] = ()
    """States ``(batch, places, features)`` of which the kernel has the features first."""

    loop: Cell[Any, Any] | None = None
    """The cell whose loop is the same, random numbers included; ``None`` is the cell itself."""


class Rows(NamedTuple):
    """How the rows of x fall into steps and sequences.

    ``running`` says how many sequences are running at each step, from the longest to the shortest,
    or is ``None`` if all are.
    """

    steps: int
    batch: int
    running: tuple[int, ...] | None


def as_kernel(states: Sequence[Tensor], turned: Sequence[int]) -> list[Tensor]:
    """States of a cell ``(rows, ...)`` as a kernel has them, ``(rows, numbers)``."""
    return [
        (state.transpose(1, 2) if index in turned else state).reshape(state.shape[0], -1)
        for index, state in enumerate(states)
    ]


def as_cell(
    states: Sequence[Tensor], shapes: Sequence[torch.Size], turned: Sequence[int]
) -> list[Tensor]:
    """The way back, to states whose rows have these shapes."""
    return [
        state.reshape(-1, *reversed(shape)).transpose(1, 2)
        if index in turned
        else state.reshape(-1, *shape)
        for index, (state, shape) in enumerate(zip(states, shapes, strict=False))
    ]


def uniform(tensors: Sequence[Tensor]) -> bool:
    """Whether all tensors are plain, in main memory and of one type that kernels know."""
    dtype = tensors[0].dtype
    return dtype in (torch.float32, torch.float64) and all(
        tensor.dtype == dtype
        and tensor.device.type == "cpu"
        and tensor.layout == torch.strided
        and type(tensor) in (Tensor, nn.Parameter)
        for tensor in tensors
    )
