"""Finding a place in a memory: by content, by moving from the last place, by use.

Weights are computed in at least single precision, also where a model runs in half: what a
softmax loses there is a head's aim.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def wide(x: Tensor) -> Tensor:
    """x in at least single precision."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def unit(x: Tensor, floor: float) -> Tensor:
    r"""Vectors of length one: :math:`x / \max(|x|, \epsilon)`.

    Args:
        x: the vectors, along the last dimension.
        floor: :math:`\epsilon`, which keeps the value and the gradient of nothing finite.

    Example:
        >>> unit(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), floor=1e-8)
        tensor([[0.6000, 0.8000],
                [0.0000, 0.0000]])
    """
    x = wide(x)
    # the floor goes under the root, where it also cuts off the root's endless slope at zero
    return x / x.square().sum(-1, keepdim=True).clamp_min(floor * floor).sqrt()


def cosine(key: Tensor, directions: Tensor, floor: float) -> Tensor:
    r"""The cosine of the angle between a key and each cell.

    .. math::
        S[k, M[i]] = \frac{k \cdot M[i]}{\max(|k|, \epsilon) \max(|M[i]|, \epsilon)}

    Args:
        key: what each head looks for.
        directions: ``unit(memory, floor)``, which the heads of a step share.
        floor: :math:`\epsilon`.

    Shape:
        key ``(batch, heads, width)``, directions ``(batch, cells, width)``; the result is
        ``(batch, heads, cells)``.

    Example:
        >>> memory = torch.tensor([[[2.0, 0.0], [1.0, 1.0], [0.0, 0.0]]])
        >>> cosine(torch.tensor([[[1.0, 0.0]]]), unit(memory, floor=1e-8), floor=1e-8)
        tensor([[[1.0000, 0.7071, 0.0000]]])
    """
    return wide(torch.bmm(unit(key, floor), directions.transpose(1, 2)))


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


def standardise(counts: Tensor, eps: float, there: Tensor | None = None) -> Tensor:
    r"""Counts of use, centred over the cells and divided by their standard deviation.

    .. math::
        u[i] = \frac{n[i] - \bar n}{\sqrt{\overline{(n - \bar n)^2} + \epsilon}}

    Shape:
        counts ``(..., cells)``; the result likewise. `there` says which cells there are, if not
        all: the others do not count, and their result is zero.

    Example:
        >>> standardise(torch.tensor([0.0, 2.0, 2.0, 0.0]), eps=0.0)
        tensor([-1.,  1.,  1., -1.])
        >>> there = torch.tensor([True, True, False])
        >>> standardise(torch.tensor([0.0, 2.0, 9.0]), eps=0.0, there=there)
        tensor([-1.,  1.,  0.])
    """
    if there is not None:
        among = there.to(counts.dtype)
        number = among.sum(-1, keepdim=True).clamp_min(1)
        centred = (counts - (counts * among).sum(-1, keepdim=True) / number) * among
        variance = centred.square().sum(-1, keepdim=True) / number
        return centred * torch.rsqrt(variance + eps)
    return F.layer_norm(counts, counts.shape[-1:], eps=eps)
