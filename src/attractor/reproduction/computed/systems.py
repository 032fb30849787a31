"""Systems with known answers: layers with shortcuts, maps, a vector field, landscapes."""

from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Generator, Tensor, nn

from attractor.dynamics import (
    cell_map,
    equilibria,
    euler,
    expression,
    layer_jacobians,
    orbit,
    vector_field,
)
from attractor.models import HCN, ResMLP
from attractor.reproduction.computed.found import Found

MINIMA = ((-2.2, 1.4, 15.0, 0.9), (-1.8, -1.6, 15.0, 1.5), (2.0, 0.0, 9.0, 1.2))
"""Place, depth and width of each minimum below a plateau of 20: the two on the left reach 5."""


def terrain(x: Tensor, y: Tensor) -> Tensor:
    """A loss with three minima: two of the same depth and different widths, one that is shallow.

    Example:
        >>> at = torch.tensor([-2.2, 2.0]), torch.tensor([1.4, 0.0])
        >>> [round(float(loss)) for loss in terrain(*at)]
        [5, 11]
    """
    loss = torch.full_like(x, 20.0)
    for a, b, depth, width in MINIMA:
        loss = loss - depth * torch.exp(-((((x - a) ** 2 + (y - b) ** 2) / width**2) ** 1.5))
    return loss


def shortcuts(data: Path | None = None) -> Iterator[Found]:
    """Jacobians of residual and highway layers beside their equations (000, table 2.1)."""
    g = Generator().manual_seed(0)
    n = torch.randn(5, 8, generator=g, dtype=torch.float64)
    identity = torch.eye(8, dtype=torch.float64)
    residual = ResMLP([3, 8, 8, 2], generator=g, dtype=torch.float64).layers[0]
    highway = HCN([3, 8, 8, 2], generator=g, dtype=torch.float64).layers[0]

    def plain(layer: nn.Module, at: Tensor) -> Tensor:
        """D W, by hand."""
        weight, bias = layer.weight, layer.bias
        return ((at @ weight.T + bias) > 0).double()[..., None] * weight  # type: ignore[operator]

    def error(layer: Callable[[Tensor], Tensor], right: Tensor) -> float:
        return float((layer_jacobians([layer], n)[0] - right).abs().max())

    with torch.no_grad():
        yield Found(
            "residual",
            "largest error",
            error(lambda a: a + torch.relu(residual(a)), identity + plain(residual, n)),
        )
        for gate, right in ((0.0, identity.expand(5, 8, 8)), (1.0, plain(highway, n))):
            opened = torch.tensor(gate, dtype=torch.float64)
            yield Found(
                f"highway, T = {gate:g}",
                "largest error",
                error(lambda a, t=opened: torch.lerp(a, torch.relu(highway(a)), t), right),  # type: ignore[misc]
            )


def descent(data: Path | None = None) -> Iterator[Found]:
    """Gradient descent on the landscape of three minima by rate (000, figures 2.2 to 2.5)."""
    a, b, depth, _ = MINIMA[1]
    for name, rate in (("small", 0.005), ("good", 0.05), ("large", 1.0)):
        place = torch.tensor([a + 1.0, b + 0.8], dtype=torch.float64, requires_grad=True)
        arrived = 0
        for update in range(1, 1001):
            loss = terrain(place[:1], place[1:]).sum()
            if float(loss.detach()) < 20 - depth + 0.5:
                arrived = update
                break
            (slope,) = torch.autograd.grad(loss, place)
            place = (place - rate * slope).detach().requires_grad_()
        yield Found(f"{name} rate", "updates until the loss is 5.5, at most 1,000", arrived or 1000)


def widths(data: Path | None = None) -> Iterator[Found]:
    """Depths and widths of the three minima (000, figure 2.6)."""
    side = torch.linspace(-2, 2, 4001, dtype=torch.float64)
    for number, (a, b, _, _) in enumerate(MINIMA, start=1):
        cut = terrain(a + side, torch.full_like(side, b))
        below = float((cut < cut.min() + 1).double().mean()) * 4
        yield Found(f"minimum {number}", "lowest loss", float(cut.min()))
        yield Found(f"minimum {number}", "width of the bottom", below)


def batches(data: Path | None = None) -> Iterator[Found]:
    """How far apart the minima of three batches are (000, figure 2.7)."""
    for seed in range(10):
        for name, moves in (("one distribution", 0.0), ("it moves", 0.6)):
            g = Generator().manual_seed(seed)
            lowest = []
            for number in range(3):
                x = torch.randn(200, 2, generator=g, dtype=torch.float64)
                w = torch.tensor([1.0 + moves * (number - 1), 1.0 + moves * (1 - number)]).double()
                y = x @ w + 0.3 * torch.randn(200, generator=g, dtype=torch.float64)
                lowest.append(torch.linalg.lstsq(x, y[:, None]).solution[:, 0])
            apart = torch.cdist(torch.stack(lowest), torch.stack(lowest)).max()
            yield Found(name, "distance of minima", float(apart), seed)


def slopes(*maps: str) -> Callable[[Path | None], Iterator[Found]]:
    """The slope at the origin of maps, and the size of a state after five steps over before."""

    def found(data: Path | None = None) -> Iterator[Found]:
        for text in maps:
            step = expression(text)
            (origin,) = [one for one in equilibria(step, -4, 4).points if one.x == 0]
            way = orbit(step, torch.tensor(0.1, dtype=torch.float64), 5)
            yield Found(text, "slope at the origin", origin.slope)
            yield Found(text, "growth in five steps", float(way[-1] / way[0]))

    return found


CELL_STATES: tuple[tuple[str, float, tuple[float, ...], tuple[float, ...]], ...] = (
    ("unregulated", 1.0, (1, 0.25, 1), (1, 0, 0.75)),
    ("large constant f", 1.0, (0.9, 0.9, 0.9), (1, 0.75, 0.5)),
    ("small constant f", 2.0, (0.25, 0.25, 0.25), (1, 0.75, 0.15)),
)
"""A name, where the cell state starts, and the gates f and i of three steps."""


def cell_states(data: Path | None = None) -> Iterator[Found]:
    """In how many of three steps a cell state grows, by its gates (000, figure 4.2)."""
    for name, start, forget, write in CELL_STATES:
        state, grew = torch.tensor(start, dtype=torch.float64), 0
        for f, i in zip(forget, write, strict=True):
            after = cell_map(f, i)(state)
            grew += int(abs(float(after)) > abs(float(state)))
            state = after
        yield Found(name, "steps that grow", grew)


def field(data: Path | None = None) -> Iterator[Found]:
    """What stands still in a field with two basins (000, figure 2.9)."""
    step = euler(lambda u: torch.stack([u[..., 0] - u[..., 0] ** 3, -u[..., 1]], -1))
    found = vector_field(step, samples=21, basins=400)
    assert found.points is not None
    assert found.basins is not None
    kinds = list(found.points.stability)
    yield Found("field", "sinks", kinds.count("stable"))
    yield Found("field", "points that are no sinks", len(kinds) - kinds.count("stable"))
    yield Found("field", "basins", len(set(found.basins.flatten().tolist()) - {-1}))
