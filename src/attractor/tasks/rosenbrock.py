"""Rosenbrock's function, a long curved valley."""

import torch
from torch import Generator, Tensor

from attractor.tasks.batch import Batch
from attractor.tasks.objective import Objective


class Rosenbrock(Objective):
    r"""Rosenbrock's function, whose minimum lies in a curved and nearly flat valley.

    .. math::
        f(\theta) = \sum_{i=1}^{d-1} 100\,(\theta_{i+1} - \theta_i^2)^2 + (1 - \theta_i)^2

    Its least value is 0, where all coordinates are 1. It is the same function for every learner;
    they differ in where they start.

    Args:
        dimension: of :math:`\theta`, at least 2.

    Shape:
        x, the identity, ``(dimension, dimension)``; y, the minimum, ``(dimension,)``; the output
        is :math:`\theta`.

    Example:
        >>> task = Rosenbrock(3)
        >>> float(task.value(torch.tensor([1.0, 1.0, 1.0]), torch.ones(3)))
        0.0

    Departs from the paper: Rosenbrock has two dimensions; the sum over neighbours is the usual
    form in more.

    References:
        Rosenbrock (1960), An automatic method for finding the greatest or least value of a
        function, The Computer Journal 3(3).
    """

    reference = "rosenbrock1960automatic"

    def __init__(self, dimension: int = 2) -> None:
        super().__init__(dimension, least=2)

    def draw(self, *, generator: Generator) -> Batch:
        """The function, which is always the same."""
        return Batch(torch.eye(self.dimension), torch.ones(self.dimension))

    def value(self, output: Tensor, y: Tensor) -> Tensor:
        """The function's value at the output."""
        here, after = output[..., :-1], output[..., 1:]
        return (100 * (after - here**2) ** 2 + (1 - here) ** 2).sum()
