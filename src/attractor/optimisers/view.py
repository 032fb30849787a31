"""What a rule is told of a row of coordinates: of which tensors of a network they are."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor


class View(NamedTuple):
    """Which of a network's numbers a rule is shown, and what the network was shown.

    The numbers of a network's tensors, one tensor after the other, are its *coordinates*. A rule
    is the same rule wherever it is used because it sees the borders of the tensors, whether it is
    given a tensor at a time, as by an optimiser, or several networks at once, as in meta-training.

    Args:
        shapes: of all tensors of the network, in their order.
        where: which of its coordinates these are.
        context: what the learners were shown, for a rule that needs it, or what its `look` made
            of that.
        overwrite: whether the memory of the state may be that of the next one.

    Example:
        >>> view = View.of([torch.zeros(2, 3), torch.zeros(2)])
        >>> weight, bias = view.tensors(torch.arange(8.0)[None])
        >>> weight.shape, bias.tolist()
        (torch.Size([1, 2, 3]), [[6.0, 7.0]])
    """

    shapes: tuple[tuple[int, ...], ...]
    where: slice
    context: Any = None
    overwrite: bool = False

    @classmethod
    def of(cls, tensors: Iterable[Tensor]) -> View:
        """The view of all coordinates of a network with these tensors."""
        shapes = tuple(tuple(t.shape) for t in tensors)
        return cls(shapes, slice(0, sum(map(math.prod, shapes))))

    def at(self, some: slice) -> View:
        """The view of some of these coordinates, counted from the first of them."""
        first = self.where.start
        return self._replace(where=slice(first + some.start, first + some.stop))

    def split(self, row: Tensor) -> list[Tensor]:
        """Cut these coordinates at the borders of tensors.

        Shape:
            row ``(learners, coordinates)``; each piece ``(learners, its coordinates)``.
        """
        first, last = self.where.start, self.where.stop
        borders = pairwise(accumulate(map(math.prod, self.shapes), initial=0))
        return [
            row[:, max(start, first) - first : min(stop, last) - first]
            for start, stop in borders
            if max(start, first) < min(stop, last)
        ]

    def tensors(self, row: Tensor) -> list[Tensor]:
        """All coordinates of a network as its tensors.

        Shape:
            row ``(learners, coordinates)``; each tensor ``(learners, *shape)``.
        """
        parts = row.split_with_sizes([math.prod(shape) for shape in self.shapes], dim=1)
        return [p.view(len(row), *s) for p, s in zip(parts, self.shapes, strict=True)]


def count(parameters: Iterable[Tensor]) -> int:
    """How many coordinates a network has."""
    return sum(p.numel() for p in parameters)


def flatten(tensors: Iterable[Tensor]) -> Tensor:
    """Parameters of one learner as a row of coordinates ``(1, coordinates)``."""
    return torch.cat([t.reshape(-1) for t in tensors])[None]
