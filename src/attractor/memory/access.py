"""Reading from a memory and writing to it, with weights that say how much of each cell."""

import torch
from torch import Tensor


def read(memory: Tensor, weights: Tensor) -> Tensor:
    r"""What each head sees: :math:`r = M^\top w`.

    Args:
        memory: the cells.
        weights: how much of each cell each head reads.

    Shape:
        memory ``(..., cells, width)``, weights ``(..., heads, cells)``; the result is
        ``(..., heads, width)``.

    Example:
        >>> memory = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> read(memory, torch.tensor([[0.0, 1.0], [0.5, 0.5]]))
        tensor([[3., 4.],
                [2., 3.]])
    """
    return torch.matmul(weights, memory)


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
        memory ``(..., cells, width)``, weights ``(..., heads, cells)``, erase and add
        ``(..., heads, width)``; the result is shaped as the memory.

    Example:
        >>> memory = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> weights, erase = torch.tensor([[0.5, 0.0]]), torch.tensor([[1.0, 0.0]])
        >>> erase_and_add(memory, weights, erase, add=torch.ones(1, 2))
        tensor([[1.0000, 2.5000],
                [3.0000, 4.0000]])
    """
    kept = memory
    # one head after the other: the gradient of torch.prod looks at the data for zeros
    for w, e in zip(weights.unbind(-2), erase.unbind(-2), strict=True):
        kept = kept * (1 - w.unsqueeze(-1) * e.unsqueeze(-2))
    return kept + torch.matmul(weights.transpose(-1, -2), add)


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
    w = weights.unsqueeze(-1)
    return memory * (1 - w) + w * content.unsqueeze(-2)
