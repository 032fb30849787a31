"""Difference systems with known answers: tent, logistic, Hénon, and the cell of an LSTM."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

Map = Callable[[Tensor], Tensor]


def tent(mu: float = 2.0) -> Map:
    r"""The tent map :math:`x \mapsto \mu \min(x, 1 - x)`; its exponent is :math:`\log \mu`.

    Example:
        >>> tent()(torch.tensor([0.25, 0.75]))
        tensor([0.5000, 0.5000])
    """
    return lambda x: mu * torch.minimum(x, 1 - x)


def logistic(r: float = 4.0) -> Map:
    r"""The logistic map :math:`x \mapsto r x (1 - x)`; at r = 4 its exponent is :math:`\log 2`.

    Example:
        >>> logistic(2.0)(torch.tensor(0.5))
        tensor(0.5000)
    """
    return lambda x: r * x * (1 - x)


def henon(a: float = 1.4, b: float = 0.3) -> Map:
    r"""The Hénon map :math:`(x, y) \mapsto (1 - a x^2 + y, b x)` of a state ``(..., 2)``.

    Its exponents add up to :math:`\log |b|`; at the usual values the first is about 0.419.

    Example:
        >>> henon()(torch.tensor([1.0, 0.0]))
        tensor([-0.4000,  0.3000])
    """

    def step(state: Tensor) -> Tensor:
        x, y = state.unbind(-1)
        return torch.stack([1 - a * x**2 + y, b * x], -1)

    return step


def cell_map(f: float, i: float) -> Map:
    r"""The cell of an LSTM whose gates stand still: :math:`x \mapsto f x + i \tanh(x)`.

    Example:
        >>> cell_map(0.9, 1.0)(torch.tensor(1.0))
        tensor(1.6616)

    References:
        Kuo et al. (2018), DecayNet, figure 2.
    """
    return lambda x: f * x + i * torch.tanh(x)


def regime(f: float, i: float) -> Literal["catch", "release", "neutral"]:
    """What the origin of `cell_map` does: its slope there is f + i.

    Below 1 the origin is a sink, which catches; above 1 it is a source, which releases.

    Example:
        >>> regime(0.25, 0.15), regime(0.9, 0.5)
        ('catch', 'release')
    """
    slope = f + i
    return "catch" if slope < 1 else "release" if slope > 1 else "neutral"


def compose(step: Map, times: int) -> Map:
    """The map that takes `times` steps at once.

    Example:
        >>> compose(lambda x: 2 * x, 3)(torch.tensor(1.0))
        tensor(8.)
    """

    def several(x: Tensor) -> Tensor:
        for _ in range(times):
            x = step(x)
        return x

    return several
