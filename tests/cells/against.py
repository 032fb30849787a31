"""Compare a cell with its NumPy reference, sequence by sequence."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Generator, Tensor
from torch.utils._pytree import tree_leaves

from attractor.cells import Cell, unroll
from contracts.cells import perturb, seeded

Array = npt.NDArray[Any]
TIME, BATCH = 7, 3


def random_cell(make: Any, input_size: int, hidden_size: int, **options: Any) -> Any:
    """A cell in float64 with no parameter at its initial value."""
    g = seeded(2)
    return perturb(make(input_size, hidden_size, generator=g, dtype=torch.float64, **options), g)


def normal(*shape: int, generator: Generator | None = None) -> Tensor:
    return torch.randn(*shape, generator=generator or seeded(3), dtype=torch.float64)


def array(tensor: Tensor) -> Array:
    values: Array = tensor.detach().numpy()
    return values


def blocks(prefix: str, names: str, tensor: Tensor) -> dict[str, Array]:
    """Name the equal parts of a stack: ``blocks("W_", "FIOA", weight)``."""
    parts = tensor.detach().chunk(len(names))
    return {f"{prefix}{name}": array(part) for name, part in zip(names, parts, strict=True)}


def noting(seen: list[Tensor]) -> Callable[[Tensor], Tensor]:
    """A tap that notes what passes and leaves it as it is."""

    def note(x: Tensor) -> Tensor:
        seen.append(x)
        return x

    return note


errors: list[float] = []
"""How far cell and reference were apart, at each comparison of the test that is running."""


def agree(found: Tensor, expected: Any, rtol: float = 0) -> None:
    """Fail unless the two agree to 1e-10; with ``--errors``, pytest says how well they do."""
    errors.append(float(np.abs(array(found) - expected).max()))
    np.testing.assert_allclose(array(found), expected, rtol=rtol, atol=1e-10)


def check(
    cell: Cell[Any, Any],
    run: Callable[..., Any],
    weights: dict[str, Array],
    state: dict[str, int],
    pack: Callable[..., Any],
    **options: Any,
) -> None:
    """Outputs and last state agree, from the usual start and from a random one.

    `state` names the parts of the reference's state and their sizes; `pack` makes the cell's
    state of them.
    """
    g = seeded(4)
    x = normal(TIME, BATCH, cell.input_size, generator=g)
    random = {name: normal(BATCH, size, generator=g) for name, size in state.items()}
    for start in (None, random):
        first = cell.initial_state(BATCH) if start is None else pack(*start.values())
        output, last, _ = unroll(cell, cell.prepare(x), first)
        for row in range(BATCH):
            given = None if start is None else {k: array(v[row]) for k, v in start.items()}
            expected, end, _ = run(weights, array(x[:, row]), state=given, **options)
            agree(output[:, row], expected)
            ends = pack(*(torch.as_tensor(end[name]) for name in state))
            for found, leaf in zip(tree_leaves(last), tree_leaves(ends), strict=True):
                agree(found[row], array(leaf))
