"""Finding a place in a memory: by content, by moving from the last place, by use.

Weights are computed in at least single precision, also where a model runs in half: what a
softmax loses there is a head's aim.
"""

import torch
from torch import Tensor


def wide(x: Tensor) -> Tensor:
    """x in at least single precision."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def cosine(key: Tensor, memory: Tensor, floor: float) -> Tensor:
    r"""The cosine of the angle between a key and each cell.

    .. math::
        S[k, M[i]] = \frac{k \cdot M[i]}{\max(|k|, \epsilon) \max(|M[i]|, \epsilon)}

    Args:
        key: what each head looks for.
        memory: the cells.
        floor: :math:`\epsilon`, which keeps an empty cell's value and gradient finite.

    Shape:
        key ``(..., heads, width)``, memory ``(..., cells, width)``; the result is
        ``(..., heads, cells)``.

    Example:
        >>> memory = torch.tensor([[2.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
        >>> cosine(torch.tensor([[1.0, 0.0]]), memory, floor=1e-8)
        tensor([[1.0000, 0.7071, 0.0000]])
    """
    key, memory = wide(key), wide(memory)
    dots = key @ memory.transpose(-1, -2)
    lengths = _length(key, floor).unsqueeze(-1) * _length(memory, floor).unsqueeze(-2)
    return wide(dots) / lengths


def _length(x: Tensor, floor: float) -> Tensor:
    # the floor goes under the root, where it also cuts off the root's endless slope at zero
    return x.square().sum(-1).clamp_min(floor * floor).sqrt()


def shift(weights: Tensor, shifts: Tensor) -> Tensor:
    r"""Move weights round the memory: a circular convolution.

    .. math::
        \tilde w[i] = \sum_j w[j] \, s[i - j]

    Args:
        weights: how much of each cell.
        shifts: how much of each shift, from ``-(width // 2)`` upwards; a shift of 1 moves from
            cell j to cell j + 1.

    Shape:
        weights ``(..., cells)``, shifts ``(..., width)``; the result is shaped as the weights.

    Example:
        >>> shift(torch.tensor([1.0, 0.0, 0.0, 0.0]), torch.tensor([0.2, 0.5, 0.3]))
        tensor([0.5000, 0.3000, 0.0000, 0.2000])
    """
    width = shifts.shape[-1]
    moved = [torch.roll(weights, n - width // 2, -1) for n in range(width)]
    return (torch.stack(moved, -1) * shifts.unsqueeze(-2)).sum(-1)


def sharpen(weights: Tensor, sharpness: Tensor) -> Tensor:
    r"""Raise weights to a power and bring their sum back to one.

    .. math::
        w[i] = \frac{\tilde w[i]^\gamma}{\sum_j \tilde w[j]^\gamma}

    Done with logarithms: the powers of many small weights would vanish, and their sum divide by
    zero. A weight below 1e-16 counts as 1e-16.

    Args:
        weights: non-negative.
        sharpness: :math:`\gamma`, at least 1.

    Shape:
        weights ``(..., cells)``, sharpness ``(..., 1)``; the result is shaped as the weights.

    Example:
        >>> sharpen(torch.tensor([0.6, 0.2, 0.2]), torch.tensor([2.0]))
        tensor([0.8182, 0.0909, 0.0909])
    """
    return torch.softmax(wide(sharpness) * wide(weights).clamp_min(1e-16).log(), -1)


def standardise(counts: Tensor, eps: float) -> Tensor:
    r"""Counts of use, centred over the cells and divided by their standard deviation.

    .. math::
        u[i] = \frac{n[i] - \bar n}{\sqrt{\overline{(n - \bar n)^2} + \epsilon}}

    Shape:
        counts ``(..., cells)``; the result likewise.

    Example:
        >>> standardise(torch.tensor([0.0, 2.0, 2.0, 0.0]), eps=0.0)
        tensor([-1.,  1.,  1., -1.])
    """
    centred = counts - counts.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt()
