"""Networks with one layer more that say the same."""

from copy import deepcopy

import torch
from torch import nn

from attractor.errors import InputError
from attractor.models import HCN, MLP, ResMLP


def deepen(model: nn.Module) -> nn.Module:
    r"""A network with one hidden layer more, before the last, that says what the given one does.

    .. math::
        h_{L} = \mathrm{ReLU}(I\, h_{L-1}) = h_{L-1}

    since what a ReLU lets through is not below zero. In an `HCN`, whatever the gate says; in a
    `ResMLP` the new layer starts at zero instead, since the identity goes past it.

    Args:
        model: an `MLP` of ReLUs, `HCN` or `ResMLP` with a hidden layer; it is left as it is.

    Example:
        >>> model = MLP([4, 8, 2]).double()
        >>> deeper, x = deepen(model), torch.randn(3, 4).double()
        >>> len(deeper.layers), torch.equal(deeper(x), model(x))
        (3, True)

    Departs from the paper: no normalisation, whose statistics it sets. Recurrent layers have no
    such identity: a cell's gates always mix what was with what is.

    References:
        Chen et al. (2016), Net2Net, arXiv:1511.05641, section 2.3.
    """
    deep = deepcopy(model)
    match deep:
        case MLP() if deep.activation == "relu" and len(deep.layers) > 1:
            deep.layers.insert(len(deep.layers) - 1, _layer(deep.layers[-2], 1.0))
        case HCN():
            deep.layers.append(_layer(deep.first, 1.0))
            gate = nn.Linear(deep.first.in_features, deep.first.out_features).to(deep.first.weight)
            nn.init.zeros_(gate.weight)
            nn.init.zeros_(gate.bias)
            deep.gates.append(gate)
        case ResMLP():
            deep.layers.append(_layer(deep.first, 0.0))
        case _:
            raise InputError(
                "expected an MLP of ReLUs with a hidden layer, an HCN or a ResMLP, between whose "
                f"layers the identity fits, but got {type(model).__name__}. Try grow."
            )
    return deep


def _layer(above: nn.Module, diagonal: float) -> nn.Linear:
    """A square layer behind another one, a multiple of the identity."""
    assert isinstance(above, nn.Linear)
    width = above.out_features
    layer = nn.Linear(width, width).to(above.weight)
    with torch.no_grad():
        layer.weight.copy_(diagonal * torch.eye(width))
        layer.bias.zero_()
    return layer
