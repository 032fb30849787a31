"""A highway network as an iterated map: how many attractors does an input have?"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attractor.dynamics.fixed import FixedPoints, fixed_points
from attractor.errors import InputError
from attractor.models import HCN


def highway_map(model: HCN, x: Tensor, layer: int = 0) -> Callable[[Tensor], Tensor]:
    r"""A highway layer with its input held, as a map of its state.

    .. math::
        k \mapsto (1 - T(x)) \odot k + T(x) \odot \mathrm{ReLU}(W k + b)

    Args:
        model: it is read in double precision, and not changed.
        x: one sample.
        layer: which highway.

    Example:
        >>> step = highway_map(HCN([3, 4, 4, 2]), torch.ones(3))
        >>> step(torch.zeros(4).double()).shape
        torch.Size([4])

    References:
        Kuo (2021), thesis, sections 6.2.2 and 6.2.3.
    """
    if not 0 <= layer < len(model.layers):
        raise InputError(
            f"expected a highway from 0 to {len(model.layers) - 1}, but got {layer}. Try 0."
        )
    plain: Any = model.layers[layer]
    gate: Any = model.gates[layer]
    W, b = plain.weight.detach().double(), plain.bias.detach().double()
    with torch.no_grad():
        flat = x.double().reshape(-1)
        T = torch.sigmoid(gate.weight.double() @ flat + gate.bias.double())
    return lambda k: (1 - T) * k + T * torch.relu(W @ k + b)


def highway_attractors(
    model: HCN, samples: Tensor, *, layer: int = 0, starts: int = 50, spread: float = 5.0
) -> list[FixedPoints]:
    """The fixed points of a highway layer, for each sample ``(samples, features)`` held as input.

    The gate is between 0 and 1 and stands on both sides, so they are the fixed points of the plain
    layer, whatever the sample: the input chooses how fast a state moves, and where it starts, but
    not where it can end.

    Example:
        >>> model = HCN([3, 4, 4, 2], generator=torch.Generator().manual_seed(0))
        >>> [len(found) for found in highway_attractors(model, torch.randn(2, 3), starts=20)]
        [1, 1]
    """
    width = model.first.out_features
    return [
        fixed_points(highway_map(model, x, layer), starts, size=width, spread=spread)
        for x in samples
    ]


@torch.no_grad()
def highway_ends(model: HCN, samples: Tensor, *, layer: int = 0, steps: int = 10000) -> Tensor:
    """Where the state of each sample goes if its highway is passed again and again.

    It starts where the network's first layer puts it. A row that still moves, or has left all
    bounds, is NaN.

    Args:
        model: it is not changed.
        samples: ``(samples, features)``.
        layer: which highway.
        steps: after which a state has to stand still.

    Shape:
        ``(samples, units)``, in double precision.

    Example:
        >>> model = HCN([3, 4, 4, 2], generator=torch.Generator().manual_seed(0))
        >>> ends = highway_ends(model, torch.randn(5, 3))
        >>> bool(torch.allclose(ends, ends[0].expand(5, 4)))  # one attractor for all
        True
    """
    found = []
    for x in samples:
        step = highway_map(model, x, layer)
        first: Any = model.first
        k = torch.relu(first.weight.double() @ x.double().reshape(-1) + first.bias.double())
        for _ in range(steps):
            k, before = step(k), k
            if not k.isfinite().all() or torch.allclose(k, before, rtol=1e-9, atol=1e-12):
                break
        still = torch.allclose(k, before, rtol=1e-9, atol=1e-12)
        found.append(k if still else torch.full_like(k, torch.nan))
    return torch.stack(found)
