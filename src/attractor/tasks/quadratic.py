"""Random quadratics, the first problem of learned optimisers."""

import math

import torch
from torch import Generator, Tensor

from attractor.checks import number
from attractor.tasks.batch import Batch
from attractor.tasks.objective import Objective


class Quadratic(Objective):
    r"""A random quadratic: :math:`f(\theta) = \lVert W\theta - y \rVert^2`.

    The entries of :math:`W` and :math:`y` are standard normal, and drawn once for each learner.
    With a condition number :math:`\kappa` given, :math:`W = U \operatorname{diag}(s) V^\top` with
    random rotations :math:`U, V` and the logarithms of :math:`s_i^2` spread evenly from :math:`1 /
    \kappa` to 1, so that the Hessian :math:`2 W^\top W` has that condition number, and :math:`y = W
    \theta^*` with a standard normal :math:`\theta^*`.

    Args:
        dimension: of :math:`\theta`, of :math:`y`, and of both sides of :math:`W`.
        condition: :math:`\kappa`; ``None`` leaves it to chance.

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

    Departs from the paper: nothing, without a condition number. (The code published with it draws
    uniform numbers.)

    References:
        Andrychowicz et al. (2016), Learning to learn by gradient descent by gradient descent,
        arXiv:1606.04474, section 3.1.
    """

    reference = "andrychowicz2016learning"

    def __init__(self, dimension: int = 10, *, condition: float | None = None) -> None:
        super().__init__(dimension)
        self.condition = None if condition is None else number("condition", condition, 1)

    def draw(self, *, generator: Generator) -> Batch:
        """A fresh quadratic, decided by the generator alone."""
        n = self.dimension
        if self.condition is not None:
            return self._conditioned(self.condition, generator)
        return Batch(torch.randn(n, n, generator=generator), torch.randn(n, generator=generator))

    def _conditioned(self, condition: float, generator: Generator) -> Batch:
        n = self.dimension
        drawn = torch.randn(2, n, n, dtype=torch.float64, generator=generator)
        u, v = torch.linalg.qr(drawn).Q
        s = torch.logspace(-math.log10(condition) / 2, 0, n, dtype=torch.float64)
        w = u * s @ v.mT
        target = torch.randn(n, dtype=torch.float64, generator=generator)
        return Batch(w.float(), (w @ target).float())

    def value(self, output: Tensor, y: Tensor) -> Tensor:
        """The squared distance, summed over the dimensions."""
        return ((output - y) ** 2).sum()
