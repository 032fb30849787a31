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
