"""Gradients of any magnitude as two numbers of about one."""

import math

import torch
from torch import Tensor

from attractor.errors import InputError


def preprocess(gradient: Tensor, p: float = 10.0) -> Tensor:
    r"""Split a gradient into magnitude and direction.

    .. math::
        \nabla \to \begin{cases}
        (\log|\nabla| / p, \operatorname{sgn} \nabla) & |\nabla| \geq e^{-p} \\
        (-1, e^p \nabla) & \text{otherwise}
        \end{cases}

    Args:
        gradient: of any shape.
        p: gradients below :math:`e^{-p}` count as small.

    Shape:
        gradient ``(...)``; the result is ``(..., 2)``.

    Example:
        >>> preprocess(torch.tensor([1.0, -1.0, 0.0]))
        tensor([[ 0.,  1.],
                [ 0., -1.],
                [-1.,  0.]])

    Departs from the paper: nothing; where the gradient is zero, so is the derivative.

    References:
        Andrychowicz et al. (2016), Learning to learn by gradient descent by gradient descent,
        arXiv:1606.04474, appendix A; Kuo (2021), thesis, equation 3.15.
    """
    if not p > 0:
        raise InputError(f"expected p to be above 0, but got {p}. Try p=10.")
    small = math.exp(-p)
    # clamped first: the logarithm of a zero that `where` drops would still make a NaN gradient
    size = gradient.abs().clamp_min(small).log() / p
    direction = (gradient * math.exp(p)).clamp(-1, 1)
    return torch.stack([size, direction], dim=-1)
