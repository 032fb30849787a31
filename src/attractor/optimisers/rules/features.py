"""What a rule that sees whole tensors makes of their gradients: means, rows, columns, sizes."""

import math
from collections.abc import Callable, Sequence
from functools import cache

import torch
from torch import Tensor

from attractor.optimisers.view import View

SMALL = 1e-5


def means(x: Tensor, view: View) -> Tensor:
    """The mean of each tensor.

    Shape:
        x ``(learners, coordinates, ...)``; the means ``(learners, tensors, ...)``.

    Example:
        >>> view = View.of([torch.zeros(1, 2), torch.zeros(3)])
        >>> means(torch.tensor([[1.0, 3.0, 4.0, 5.0, 9.0]]), view)
        tensor([[2., 6.]])
    """
    parts = [part.mean(1) for part in view.split(x)]
    return torch.stack(parts, 1) if parts else x.new_zeros(len(x), 0, *x.shape[2:])


def spread(each: Tensor, view: View) -> Tensor:
    """A number of each tensor as one of each of its coordinates.

    Shape:
        each ``(learners, tensors, ...)``; the result ``(learners, coordinates, ...)``.

    Example:
        >>> view = View.of([torch.zeros(1, 2), torch.zeros(3)])
        >>> spread(torch.tensor([[2.0, 6.0]]), view)
        tensor([[2., 2., 6., 6., 6.]])
    """
    return each[:, _owners(tuple(count for _, count in view.parts()), each.device)]


def normalised(x: Tensor, view: View) -> Tensor:
    r"""Numbers in units of their tensor's: :math:`x / \sqrt{\text{mean}(x^2) + 10^{-5}}`.

    Shape:
        x and the result ``(learners, coordinates, ...)``.

    Example:
        >>> view = View.of([torch.zeros(1, 2), torch.zeros(3)])
        >>> normalised(torch.tensor([[3.0, -3.0, 0.5, 0.5, 0.5]]), view).round(decimals=3)
        tensor([[ 1., -1.,  1.,  1.,  1.]])
    """
    return x * spread((means(x.square(), view) + SMALL).rsqrt(), view)


def rows_and_columns(x: Tensor, view: View) -> tuple[Tensor, Tensor]:
    """The means over the largest dimension of each tensor, and over the second largest.

    A vector has neither rows nor columns: both are itself.

    Shape:
        x and each result ``(learners, coordinates, ...)``.

    Example:
        >>> view = View.of([torch.zeros(2, 3)])
        >>> [part.tolist() for part in rows_and_columns(torch.arange(6.0)[None], view)]
        [[[1.0, 1.0, 1.0, 4.0, 4.0, 4.0]], [[1.5, 2.5, 3.5, 1.5, 2.5, 3.5]]]
    """
    shapes = [view.shapes[tensor] for tensor, _ in view.parts()]
    parts = list(zip(view.split(x), shapes, strict=True))
    row, column = ([mean_over(one, part, shape) for part, shape in parts] for one in (-1, -2))
    return (torch.cat(row, 1), torch.cat(column, 1)) if parts else (x, x)


def mean_over(place: int, part: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The mean of a tensor over one of its two largest dimensions, at each coordinate.

    Args:
        place: -1 for the largest, -2 for the second largest.
        part: the tensor's coordinates.
        shape: its own. A vector is its own mean.

    Shape:
        part and the result ``(learners, coordinates, ...)``.
    """
    dimensions = factored_dimensions(shape)
    if dimensions is None:
        return part
    whole = part.reshape(len(part), *shape, *part.shape[2:])
    found = whole.mean(1 + dimensions[place], keepdim=True).expand_as(whole)
    return found.flatten(1, len(shape))


def factored_dimensions(shape: Sequence[int]) -> tuple[int, int] | None:
    """The second largest dimension and the largest, the later of equal ones; None of a vector.

    Example:
        >>> factored_dimensions((8, 3, 5, 5)), factored_dimensions((4, 4))
        ((3, 0), (0, 1))
    """
    if len(shape) < 2:
        return None
    order = sorted(range(len(shape)), key=lambda dimension: shape[dimension])
    return order[-2], order[-1]


def factored(
    row: Tensor,
    column: Tensor,
    squares: Tensor,
    forget: Tensor,
    view: View,
    of_vectors: Callable[[Tensor], Tensor],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The next averages of rows and columns, and what gradients and momenta are multiplied by.

    Args:
        row: the average of the means over the largest dimension.
        column: the average of those over the second largest.
        squares: of the gradients.
        forget: what each of several averages forgets.
        view: of which tensors the coordinates are.
        of_vectors: what multiplies the momenta of a vector, by the average of its squares.

    Shape:
        row and column ``(learners, coordinates, averages)``, as the results; squares with 1 in the
        place of averages.
    """
    parts = []
    pieces = zip(*(view.split(one) for one in (squares, row, column)), strict=True)
    for (tensor, _), (now, r, c) in zip(view.parts(), pieces, strict=True):
        shape = view.shapes[tensor]
        r = torch.lerp(r, mean_over(-1, now, shape).expand_as(r), forget)
        c = torch.lerp(c, mean_over(-2, now, shape).expand_as(c), forget)
        if factored_dimensions(shape) is None:
            parts.append((r, c, (r + 1e-9).clamp(min=1e-9).rsqrt(), of_vectors(r)))
            continue
        share = (r / (mean_over(-2, r, shape) + 1e-9)).clamp(min=1e-9).rsqrt()
        both = share * c.clamp(min=1e-9).rsqrt()
        parts.append((r, c, both, both))
    r, c, of_g, of_m = (torch.cat(one, 1) for one in zip(*parts, strict=True))
    return r, c, of_g, of_m


def log_sizes(view: View, size: Callable[[int | None], float], like: Tensor) -> Tensor:
    """The logarithm of what a function makes of each tensor's fan-in: ``(tensors,)``."""
    return like.new_tensor([math.log(size(view.fan_in(tensor))) for tensor, _ in view.parts()])


@cache
def _owners(counts: tuple[int, ...], device: torch.device) -> Tensor:
    numbers = torch.arange(len(counts), device=device)
    return numbers.repeat_interleave(torch.tensor(counts, device=device, dtype=torch.long))
