"""Reading from a memory and writing to it, with weights that say how much of each cell."""

import torch
from torch import Tensor


def read(memory: Tensor, weights: Tensor) -> Tensor:
    r"""What each head sees: :math:`r = M^\top w`.

    Args:
        memory: the cells.
        weights: how much of each cell each head reads.

    Shape:
        memory ``(batch, cells, width)``, weights ``(batch, heads, cells)``; the result is
        ``(batch, heads, width)``.

    Example:
        >>> memory = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
        >>> read(memory, torch.tensor([[[0.0, 1.0], [0.5, 0.5]]]))
        tensor([[[3., 4.],
                 [2., 3.]]])
    """
    return torch.bmm(weights, memory)


def erase_and_add(memory: Tensor, weights: Tensor, erase: Tensor, add: Tensor) -> Tensor:
    r"""The memory after every head has erased, and then every head has added.

    .. math::
        M'[i] = M[i] \odot \prod_n (1 - w_n[i] e_n) + \sum_n w_n[i] a_n

    Args:
        memory: the cells.
        weights: how much of each cell each head writes.
        erase: how much of each feature a head takes away, from 0 to 1.
        add: what a head puts in.

    Shape:
        memory ``(batch, cells, width)``, weights ``(batch, heads, cells)``, erase and add
        ``(batch, heads, width)``; the result is shaped as the memory.

    Example:
        >>> memory = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
        >>> weights, erase = torch.tensor([[[0.5, 0.0]]]), torch.tensor([[[1.0, 0.0]]])
        >>> erase_and_add(memory, weights, erase, add=torch.ones(1, 1, 2))
        tensor([[[1.0000, 2.5000],
                 [3.0000, 4.0000]]])
    """
    kept, heads = memory, weights.shape[1]
    # one head after the other: the gradient of torch.prod looks at the data for zeros
    for w, e in zip(weights.chunk(heads, 1), erase.chunk(heads, 1), strict=True):
        kept = kept * (1 - w.transpose(1, 2) * e)
    return kept + torch.bmm(weights.transpose(1, 2), add)


def overwrite(memory: Tensor, weights: Tensor, content: Tensor) -> Tensor:
    r"""The memory with `content` in place of what was in the cell chosen by a one-hot.

    Shape:
        memory ``(..., cells, width)``, weights ``(..., cells)``, content ``(..., width)``; the
        result is shaped as the memory.

    Example:
        >>> overwrite(torch.zeros(2, 3), torch.tensor([0.0, 1.0]), torch.tensor([5.0, 6.0, 7.0]))
        tensor([[0., 0., 0.],
                [5., 6., 7.]])
    """
    weights, content = weights.to(memory.dtype), content.to(memory.dtype)
    return torch.lerp(memory, content.unsqueeze(-2), weights.unsqueeze(-1))
