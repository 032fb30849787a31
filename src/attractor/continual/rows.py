"""Gradients of several groups of samples, as the rows of a matrix."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class GroupMatrix:
    """A matrix with a gradient in each row, cut into columns, parameter by parameter.

    Args:
        parts: the columns of each parameter, in their order.

    Shape:
        each part ``(groups, entries)``, as many entries as the parameter has.

    Example:
        >>> parts = [torch.tensor([[1.0], [2.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]])]
        >>> rows = GroupMatrix(parts)
        >>> rows.gram()
        tensor([[2., 2.],
                [2., 5.]])
        >>> rows.combine(torch.tensor([1.0, 1.0]))
        tensor([3., 1., 1.])
    """

    parts: Sequence[Tensor]

    def matrix(self) -> Tensor:
        """The whole, as one tensor."""
        return torch.cat(list(self.parts), 1)

    def above(self, other: "GroupMatrix") -> "GroupMatrix":
        """These rows, and those of another below them."""
        pairs = zip(self.parts, other.parts, strict=True)
        return GroupMatrix([torch.cat(pair) for pair in pairs])

    def gram(self) -> Tensor:
        """The inner products of all pairs of rows."""
        return torch.stack([part @ part.T for part in self.parts]).sum(0)

    def dot(self, vector: Tensor) -> Tensor:
        """The inner product of each row with a vector."""
        pairs = zip(self.parts, self._cut(vector), strict=True)
        return torch.stack([part @ some for part, some in pairs]).sum(0)

    def combine(self, factors: Tensor) -> Tensor:
        """The sum of the rows, each times a factor of its own."""
        return torch.cat([factors @ part for part in self.parts])

    def blend(self, factors: Tensor) -> Tensor:
        """The sum of the rows, each entry times a factor of its own, ``(groups, parameters)``."""
        pairs = zip(self.parts, self._cut(factors), strict=True)
        return torch.cat([(part * factor).sum(0) for part, factor in pairs])

    def _cut(self, columns: Tensor) -> tuple[Tensor, ...]:
        return torch.split(columns, [part.shape[1] for part in self.parts], dim=-1)


def products(delta: Tensor, h: Tensor, sizes: Sequence[int]) -> Tensor:
    r"""Of each group of rows, :math:`\sum_i \delta_i h_i^\top`.

    Shape:
        delta ``(samples, outputs)``, h ``(samples, inputs)``; ``(groups, outputs, inputs)``.

    Example:
        >>> products(torch.ones(3, 1), torch.tensor([[1.0], [2.0], [4.0]]), [1, 2]).flatten()
        tensor([1., 6.])
    """
    if len(set(sizes)) == 1:
        groups = (len(sizes), sizes[0], -1)
        return torch.bmm(delta.reshape(groups).transpose(1, 2), h.reshape(groups))
    found = h.new_empty(len(sizes), delta.shape[1], h.shape[1])
    pairs = zip(torch.split(delta, list(sizes)), torch.split(h, list(sizes)), strict=True)
    for group, (d, x) in enumerate(pairs):
        torch.mm(d.T, x, out=found[group])
    return found


def sums(delta: Tensor, sizes: Sequence[int]) -> Tensor:
    """The sum of each group of rows, ``(groups, outputs)``."""
    if len(set(sizes)) == 1:
        return delta.reshape(len(sizes), sizes[0], -1).sum(1)
    return torch.stack([some.sum(0) for some in torch.split(delta, list(sizes))])


def shares(sizes: Sequence[int]) -> Tensor:
    """What each sample counts if each group's loss is averaged on its own.

    Example:
        >>> shares([2, 1])
        tensor([0.5000, 0.5000, 1.0000], dtype=torch.float64)
    """
    if len(set(sizes)) == 1:
        return torch.full((sum(sizes),), 1 / sizes[0], dtype=torch.float64)
    return torch.cat([torch.full((size,), 1 / size, dtype=torch.float64) for size in sizes])
