"""A point, for objectives without data."""

import torch
from torch import Generator, Tensor, nn

from attractor.cells.init import normal_
from attractor.errors import InputError


class Point(nn.Module):
    r"""A point :math:`\theta`, asked for its components along the rows of x: :math:`x\theta`.

    What learns on `Quadratic` and `Rosenbrock`, and the smallest model for a learned optimiser.

    Args:
        dimension: of :math:`\theta`.
        std: of the normal numbers where it starts.
        generator: draws them; ``None`` means torch's default generator.

    Shape:
        x ``(directions, dimension)``; the output ``(directions,)``.

    Example:
        >>> point = Point(2, std=0.0)
        >>> point(torch.eye(2)).tolist()
        [0.0, 0.0]
    """

    def __init__(
        self,
        dimension: int,
        *,
        std: float = 1.0,
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if dimension < 1:
            raise InputError(
                f"expected at least 1 dimension of a Point, but got {dimension}. Try 10."
            )
        self.theta = nn.Parameter(torch.empty(dimension, device=device, dtype=dtype))
        normal_(self.theta, std, generator)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.theta
