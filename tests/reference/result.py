"""What every reference cell returns, and the weights it is fed."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Weights = Mapping[str, Array]
State = Mapping[str, Array]
Shapes = dict[str, tuple[int, ...]]


class Run(NamedTuple):
    """A sequence taken through a cell.

    Attributes:
        outputs: what the cell gives the next layer, ``(T, ...)``.
        state: everything carried past the last step; pass it back as ``state=`` to continue.
        steps: intermediate quantities, each with time as its first axis.
    """

    outputs: Array
    state: dict[str, Array]
    steps: dict[str, Array]


def stack(records: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
    """Turn one mapping per time step into one array per quantity."""
    return {name: np.stack([np.asarray(r[name]) for r in records]) for name in records[0]}


def random_weights(
    shapes: Mapping[str, tuple[int, ...]], rng: np.random.Generator, scale: float = 0.5
) -> dict[str, Array]:
    """Draw every weight from a normal distribution, in the order of ``shapes``."""
    return {name: scale * rng.standard_normal(shape) for name, shape in shapes.items()}
