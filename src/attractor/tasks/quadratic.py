"""Random quadratics, the first problem of learned optimisers."""

import torch
from torch import Generator, Tensor

from attractor.tasks.batch import Batch
from attractor.tasks.objective import Objective


class Quadratic(Objective):
    r"""A random quadratic: :math:`f(\theta) = \lVert W\theta - y \rVert^2`.

    The entries of :math:`W` and :math:`y` are standard normal, and drawn once for each learner.

    Args:
        dimension: of :math:`\theta`, of :math:`y`, and of both sides of :math:`W`.

    Shape:
        x, which is :math:`W`, ``(dimension, dimension)``; y ``(dimension,)``; the output
        :math:`W\theta` likewise.

    Example:
        >>> from attractor.models import Point
        >>> generator = torch.Generator().manual_seed(0)
        >>> task, point = Quadratic(), Point(10, std=0.0)
        >>> batch = task.batches(1, generator=generator).draw()
        >>> bool(task.loss(point, batch) == (batch.y**2).sum())
        True

    Departs from the paper: nothing. (The code published with it draws uniform numbers.)

    References:
        Andrychowicz et al. (2016), Learning to learn by gradient descent by gradient descent,
        arXiv:1606.04474, section 3.1.
    """

    reference = "andrychowicz2016learning"

    def __init__(self, dimension: int = 10) -> None:
        super().__init__(dimension)

    def draw(self, *, generator: Generator) -> Batch:
        """A fresh quadratic, decided by the generator alone."""
        n = self.dimension
        return Batch(torch.randn(n, n, generator=generator), torch.randn(n, generator=generator))

    def value(self, output: Tensor, y: Tensor) -> Tensor:
        """The squared distance, summed over the dimensions."""
        return ((output - y) ** 2).sum()
