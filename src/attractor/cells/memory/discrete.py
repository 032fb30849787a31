"""Choosing one cell: the noise that makes a choice random, and gradients through it."""

from typing import NamedTuple

import torch
from torch import Tensor

from attractor.cells.memory.addressing import wide


class Choice(NamedTuple):
    """One cell of each row: a one-hot, and the logarithm of its probability."""

    weights: Tensor
    log_prob: Tensor


def gumbel(*shape: int, like: Tensor) -> Tensor:
    r"""Gumbel noise, :math:`-\log(-\log U)` with U uniform, from torch's default generator.

    Example:
        >>> gumbel(2, 3, like=torch.zeros(1)).shape
        torch.Size([2, 3])
    """
    dtype = torch.promote_types(like.dtype, torch.float32)
    uniform = torch.rand(shape, device=like.device, dtype=dtype)
    return (-torch.log(-torch.log(uniform.clamp_min(torch.finfo(dtype).tiny)))).to(like.dtype)


def logistic(*shape: int, like: Tensor) -> Tensor:
    """Logistic noise, the difference of two Gumbel draws, from torch's default generator.

    It turns a sigmoid into a coin: ``sigmoid(logit + noise)`` is above one half with the
    probability ``sigmoid(logit)``. One Gumbel draw alone would favour heads.

    Example:
        >>> logistic(2, 3, like=torch.zeros(1)).shape
        torch.Size([2, 3])
    """
    return gumbel(*shape, like=like) - gumbel(*shape, like=like)


def one_hot_of_largest(scores: Tensor) -> Tensor:
    """One at the largest score of each row, zero elsewhere; no gradient.

    Example:
        >>> one_hot_of_largest(torch.tensor([0.1, 0.7, 0.2]))
        tensor([0., 1., 0.])
    """
    cells = torch.arange(scores.shape[-1], device=scores.device)
    return (cells == scores.detach().argmax(-1, keepdim=True)).to(scores.dtype)


def straight_through(hard: Tensor, soft: Tensor) -> Tensor:
    """`hard` as a value, `soft` for the gradient.

    Example:
        >>> soft = torch.tensor([0.4, 0.6], requires_grad=True)
        >>> w = straight_through(torch.tensor([0.0, 1.0]), soft)
        >>> (w * torch.tensor([2.0, 3.0])).sum().backward()
        >>> w.detach(), soft.grad
        (tensor([0., 1.]), tensor([2., 3.]))
    """
    return hard + (soft - soft.detach())


def choose(logits: Tensor, noise: Tensor | None = None) -> Choice:
    """A sample of ``softmax(logits)`` if the noise is Gumbel's; without noise, the likeliest cell.

    The largest of logits plus Gumbel noise is such a sample, so noise that was drawn beforehand
    makes the choice a function of its arguments. The log-probability has a gradient, the one-hot
    has none.

    Shape:
        logits and noise ``(..., cells)``; the one-hot likewise, its log-probability ``(...)``.

    Example:
        >>> choice = choose(torch.tensor([0.0, 2.0, 1.0]))
        >>> choice.weights, choice.log_prob
        (tensor([0., 1., 0.]), tensor(-0.4076))
    """
    logits = wide(logits)
    hard = one_hot_of_largest(logits if noise is None else logits + noise)
    return Choice(hard, (hard * torch.log_softmax(logits, -1)).sum(-1))
