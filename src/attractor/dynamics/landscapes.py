"""Losses around a network: along a line, on a plane, and along the way that training took."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from attractor.checks import whole
from attractor.errors import InputError

Loss = Callable[[], Tensor]
Parameters = nn.Module | Sequence[nn.Parameter]


@dataclass(frozen=True, slots=True)
class Landscape:
    """Losses on a grid of directions: x ``(n,)``, y ``(m,)`` or None, loss ``(n,)`` or ``(m, n)``.

    `path` ``(steps, 2)`` is where training went, for a plane through a trajectory, and
    `explained` the share of its movement that the two directions hold.
    """

    x: Tensor
    y: Tensor | None
    loss: Tensor
    path: Tensor | None = None
    explained: tuple[float, float] | None = None

    @property
    def lowest(self) -> tuple[float, ...]:
        """Coordinates of the smallest loss on the grid."""
        index = int(self.loss.nan_to_num(torch.inf).argmin())
        if self.y is None:
            return (float(self.x[index]),)
        row, column = divmod(index, len(self.x))
        return float(self.x[column]), float(self.y[row])


def own(parameters: Parameters) -> list[nn.Parameter]:
    """The parameters of a module, or those given."""
    found = parameters.parameters() if isinstance(parameters, nn.Module) else parameters
    return list(found)


def filter_direction(parameters: Parameters, generator: Generator | None = None) -> list[Tensor]:
    r"""A random direction, each filter of which is as long as that of the network.

    :math:`d_{i,j} \leftarrow \frac{d_{i,j}}{\|d_{i,j}\|} \|\theta_{i,j}\|`; a filter is a row of a
    weight. Biases and other vectors do not move.

    Example:
        >>> layer = nn.Linear(3, 2)
        >>> d = filter_direction(layer)
        >>> bool(torch.allclose(d[0].norm(dim=1), layer.weight.norm(dim=1))), float(d[1].norm())
        (True, 0.0)

    References:
        Li et al. (2018), Visualizing the loss landscape of neural nets.
    """
    drawn = generator or torch.Generator().manual_seed(0)
    directions = []
    for parameter in own(parameters):
        if parameter.dim() < 2:
            directions.append(torch.zeros_like(parameter))
            continue
        d = torch.randn(parameter.shape, generator=drawn).to(parameter)
        rows, sizes = d.flatten(1), parameter.detach().flatten(1).norm(dim=1, keepdim=True)
        directions.append((rows / rows.norm(dim=1, keepdim=True) * sizes).reshape(d.shape))
    return directions


@torch.no_grad()
def landscape(
    loss: Loss,
    parameters: Parameters,
    directions: Sequence[Sequence[Tensor]] | None = None,
    *,
    low: float = -1.0,
    high: float = 1.0,
    samples: int = 25,
    generator: Generator | None = None,
) -> Landscape:
    """Losses along one direction from the network, or on the plane of two.

    Args:
        loss: without arguments, at the present parameters.
        parameters: of the network; they are moved for each evaluation, and put back.
        directions: one or two, each a tensor for every parameter; by default two random ones,
            normalised by filter.
        low: how far to go back along each.
        high: how far to go forth.
        samples: of each side.
        generator: draws the directions; ``None`` means a fixed seed.

    Example:
        >>> w = nn.Parameter(torch.tensor([3.0, -1.0]))
        >>> along = [[torch.tensor([1.0, 0.0])]]
        >>> landscape(lambda: (w**2).sum(), [w], along, low=-4, high=0, samples=5).loss.tolist()
        [2.0, 1.0, 2.0, 5.0, 10.0]
    """
    if directions is None:
        drawn = generator or torch.Generator().manual_seed(0)
        directions = [filter_direction(parameters, drawn) for _ in range(2)]
    if len(directions) not in (1, 2):
        raise InputError(f"expected one or two directions, but got {len(directions)}.")
    side = torch.linspace(low, high, whole("samples", samples, 2), dtype=torch.float64)
    return _losses(loss, own(parameters), directions, side, side if len(directions) == 2 else None)


def _losses(
    loss: Loss,
    parameters: list[nn.Parameter],
    directions: Sequence[Sequence[Tensor]],
    x: Tensor,
    y: Tensor | None,
) -> Landscape:
    kept = [parameter.detach().clone() for parameter in parameters]
    places = (
        [[a] for a in x.tolist()] if y is None else [[a, b] for b in y.tolist() for a in x.tolist()]
    )
    found = []
    try:
        with torch.no_grad():
            for place in places:
                for index, parameter in enumerate(parameters):
                    moved = kept[index].clone()
                    for far, direction in zip(place, directions, strict=True):
                        moved += far * direction[index]
                    parameter.copy_(moved)
                found.append(float(loss()))
    finally:
        with torch.no_grad():
            for parameter, old in zip(parameters, kept, strict=True):
                parameter.copy_(old)
    losses = torch.tensor(found, dtype=torch.float64)
    return Landscape(x, y, losses if y is None else losses.reshape(len(y), len(x)))


@torch.no_grad()
def along_trajectory(
    loss: Loss,
    parameters: Parameters,
    trajectory: Tensor,
    *,
    samples: int = 25,
    margin: float = 0.2,
) -> Landscape:
    """Losses on the plane that holds most of the way that training took.

    Args:
        loss: without arguments, at the present parameters.
        parameters: of the network, which are put back.
        trajectory: flat parameters ``(steps, size)``, in the order of `parameters`; the plane goes
            through the last.
        samples: of each side.
        margin: how much further than the trajectory to look, in shares of its extent.

    Example:
        >>> w = nn.Parameter(torch.tensor([0.0, 0.0]))
        >>> way = torch.tensor([[2.0, 0.0], [1.0, 0.5], [0.0, 0.0]])
        >>> along_trajectory(lambda: (w**2).sum(), [w], way).path.shape
        torch.Size([3, 2])
    """
    mine = own(parameters)
    size = sum(parameter.numel() for parameter in mine)
    if trajectory.dim() != 2 or trajectory.shape[1] != size or len(trajectory) < 3:
        raise InputError(
            f"expected at least three rows of {size} parameters, but got {tuple(trajectory.shape)}."
        )
    way = trajectory.double() - trajectory[-1].double()
    _, values, axes = torch.linalg.svd(way[:-1], full_matrices=False)
    share = values.square() / values.square().sum()
    path = way @ axes[:2].T
    sides = []
    for low, high in zip(path.min(0).values.tolist(), path.max(0).values.tolist(), strict=True):
        extent = max(high - low, 1e-6)
        sides.append(
            torch.linspace(low - margin * extent, high + margin * extent, samples).double()
        )
    shapes = [parameter.shape for parameter in mine]
    sizes = [shape.numel() for shape in shapes]
    directions = [
        [
            part.reshape(s).to(mine[0])
            for part, s in zip(torch.split(axis, sizes), shapes, strict=True)
        ]
        for axis in axes[:2]
    ]
    kept = [parameter.detach().clone() for parameter in mine]
    for parameter, part, shape in zip(
        mine, torch.split(trajectory[-1], sizes), shapes, strict=True
    ):
        parameter.copy_(part.reshape(shape))
    try:
        seen = _losses(loss, mine, directions, *sides)
    finally:
        for parameter, old in zip(mine, kept, strict=True):
            parameter.copy_(old)
    return Landscape(seen.x, seen.y, seen.loss, path, (float(share[0]), float(share[1])))


def moving_minima(
    losses: Sequence[Loss],
    parameters: Parameters,
    directions: Sequence[Sequence[Tensor]],
    *,
    low: float = -1.0,
    high: float = 1.0,
    samples: int = 25,
) -> list[Landscape]:
    """The landscape of each batch on one plane; `Landscape.lowest` says where its minimum is.

    Example:
        >>> w = nn.Parameter(torch.zeros(2))
        >>> axes = [[torch.tensor([1.0, 0.0])], [torch.tensor([0.0, 1.0])]]
        >>> batches = [lambda: ((w - 0.5) ** 2).sum(), lambda: ((w + 0.5) ** 2).sum()]
        >>> [one.lowest for one in moving_minima(batches, [w], axes, samples=5)]
        [(0.5, 0.5), (-0.5, -0.5)]

    References:
        Kuo (2021), thesis, section 2.2.3.4 and figure 2.7.
    """
    return [
        landscape(loss, parameters, directions, low=low, high=high, samples=samples)
        for loss in losses
    ]


@dataclass(frozen=True, slots=True)
class Minimum:
    """How deep a minimum is, and how wide: at its mouth, and at its bottom."""

    depth: float
    mouth: float
    bottom: float


def minimum(line: Landscape, share: float = 0.1) -> Minimum:
    """Depth and widths of the lowest minimum of a landscape along a line.

    The mouth is between the first maxima (or ends) on both sides; the bottom is where the loss is
    within `share` of the depth of its lowest value. The depth is from the lower edge of the mouth.

    Example:
        >>> x = torch.linspace(-1.5, 1.5, 301, dtype=torch.float64)
        >>> told = minimum(Landscape(x, None, -torch.cos(torch.pi * x)))
        >>> round(told.depth, 3), round(told.mouth, 2), round(told.bottom, 2)
        (2.0, 2.0, 0.4)
    """
    if line.y is not None:
        raise InputError("expected a landscape along one direction, but got a plane.")
    loss, x = line.loss, line.x
    at = int(loss.argmin())
    left, right = at, at
    while left > 0 and loss[left - 1] >= loss[left]:
        left -= 1
    while right < len(x) - 1 and loss[right + 1] >= loss[right]:
        right += 1
    depth = float(torch.minimum(loss[left], loss[right]) - loss[at])
    low, high = at, at
    limit = float(loss[at]) + share * depth
    while low > left and float(loss[low - 1]) <= limit:
        low -= 1
    while high < right and float(loss[high + 1]) <= limit:
        high += 1
    return Minimum(depth, float(x[right] - x[left]), float(x[high] - x[low]))
