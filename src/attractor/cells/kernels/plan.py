"""What a kernel is given: which one, its sizes, and the tensors that it reads."""

from typing import Any, NamedTuple

from torch import Tensor

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
