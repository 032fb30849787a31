"""What a rule is told of a row of coordinates: of which tensors of a network they are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attractor.errors import unknown


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
        tables: which of the tensors are tables of vectors, such as embeddings, and no matrices.
        rate: what the user multiplies steps by; of use to a rule that `averages`.
        decay: how much of a parameter the user takes away in a step, None for as much as the rule
            likes; of use to a rule that `averages`.
        loss: of the learners, ``(learners,)``, None where it is not told; of use to a rule that
            `needs_loss`.

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
    tables: frozenset[int] = frozenset()
    rate: float = 1.0
    decay: float | None = None
    loss: Tensor | None = None

    @classmethod
    def of(cls, tensors: Iterable[Tensor], tables: Iterable[int] = ()) -> View:
        """The view of all coordinates of a network with these tensors."""
        shapes = tuple(tuple(t.shape) for t in tensors)
        return cls(shapes, slice(0, sum(map(math.prod, shapes))), tables=frozenset(tables))

    def at(self, some: slice) -> View:
        """The view of some of these coordinates, counted from the first of them."""
        first = self.where.start
        return self._replace(where=slice(first + some.start, first + some.stop))

    def parts(self) -> list[tuple[int, int]]:
        """Of which tensors these coordinates are, and how many of each.

        Example:
            >>> View.of([torch.zeros(2, 3), torch.zeros(2)]).at(slice(4, 8)).parts()
            [(0, 2), (1, 2)]
        """
        first, last = self.where.start, self.where.stop
        borders = pairwise(accumulate(map(math.prod, self.shapes), initial=0))
        counts = [min(stop, last) - max(start, first) for start, stop in borders]
        return [(tensor, count) for tensor, count in enumerate(counts) if count > 0]

    def split(self, row: Tensor) -> list[Tensor]:
        """Cut these coordinates at the borders of tensors.

        Shape:
            row ``(learners, coordinates)``; each piece ``(learners, its coordinates)``.
        """
        return list(row.split_with_sizes([count for _, count in self.parts()], dim=1))

    def fan_in(self, tensor: int) -> int | None:
        """How many numbers a unit of a tensor sums: None of a vector or a table, which sums none.

        Example:
            >>> view = View.of([torch.zeros(8, 3, 5, 5), torch.zeros(8), torch.zeros(90, 4)], [2])
            >>> [view.fan_in(tensor) for tensor in range(3)]
            [75, None, None]
        """
        return fan_in(self.shapes[tensor], table=tensor in self.tables)

    def tensors(self, row: Tensor) -> list[Tensor]:
        """All coordinates of a network as its tensors.

        Shape:
            row ``(learners, coordinates)``; each tensor ``(learners, *shape)``.
        """
        parts = row.split_with_sizes([math.prod(shape) for shape in self.shapes], dim=1)
        return [p.view(len(row), *s) for p, s in zip(parts, self.shapes, strict=True)]


def fan_in(shape: Sequence[int], *, table: bool = False) -> int | None:
    """How many numbers a unit of a matrix or filter sums; None of a vector or a table.

    Example:
        >>> fan_in((8, 3, 5, 5)), fan_in((8,)), fan_in((90, 4), table=True)
        (75, None, None)
    """
    return None if table or len(shape) < 2 else math.prod(shape[1:])


def tensor_size(fan_in: int | None) -> float:
    r"""The size :math:`\sigma` of a tensor whose units sum so many numbers.

    Example:
        >>> tensor_size(None), tensor_size(300), tensor_size(1_000_000)
        (1.0, 0.3333333333333333, 0.1)
    """
    if not fan_in:
        return 1.0
    return 10 * min(max(1 / math.sqrt(3 * fan_in), 0.01), 0.1)


def count(parameters: Iterable[Tensor]) -> int:
    """How many coordinates a network has."""
    return sum(p.numel() for p in parameters)


def flatten(tensors: Iterable[Tensor]) -> Tensor:
    """Parameters of one learner as a row of coordinates ``(1, coordinates)``."""
    return torch.cat([t.reshape(-1) for t in tensors])[None]


def tables(model: nn.Module) -> list[int]:
    """Which of a network's parameters are the tables of its embeddings.

    A module of one's own names those that are no `nn.Embedding` in ``table_parameters``.

    Example:
        >>> tables(nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 2)))
        [0]
        >>> class Places(nn.Module):
        ...     table_parameters = ("places",)
        ...     def __init__(self) -> None:
        ...         super().__init__()
        ...         self.scale, self.places = nn.Linear(2, 2), nn.Parameter(torch.zeros(9, 2))
        >>> tables(nn.Sequential(nn.Linear(4, 2), Places()))
        [2]
    """
    found = {id(one) for part in model.modules() for one in _own_tables(part)}
    return [i for i, parameter in enumerate(model.parameters()) if id(parameter) in found]


def _own_tables(part: nn.Module) -> list[Any]:
    if isinstance(part, nn.Embedding | nn.EmbeddingBag):
        return [part.weight]
    own, named = dict(part.named_parameters(recurse=False)), getattr(part, "table_parameters", ())
    for name in named:
        if name not in own:
            raise unknown(f"parameter of {type(part).__name__} in table_parameters", name, own)
    return [own[name] for name in named]
