"""Initialisers of weights: each fills one gate's matrix, on any device, from a generator."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Generator, Tensor, nn

from attractor.checks import plain
from attractor.errors import InputError

Initialiser = Literal["uniform", "unit", "orthogonal", "identity", "xavier"]


def uniform_(weight: Tensor, bound: float, generator: Generator | None) -> Tensor:
    """Fill with U(-bound, bound)."""
    return _fill(weight, lambda w: nn.init.uniform_(w, -bound, bound, generator), generator)


def normal_(weight: Tensor, std: float, generator: Generator | None) -> Tensor:
    """Fill with N(0, std²)."""
    return _fill(weight, lambda w: nn.init.normal_(w, 0, std, generator), generator)


def weights_(
    weight: Tensor,
    kind: Initialiser,
    hidden_size: int,
    generator: Generator | None,
    *,
    rows: int | None = None,
) -> Tensor:
    """Fill a stack of blocks of `rows` (by default `hidden_size`) rows, each on its own.

    ``uniform`` is torch.nn's U(±1/sqrt(hidden_size)) and ``unit`` is U(±1); ``orthogonal`` and
    ``identity`` are Saxe et al. (2014) and Le et al. (2015); ``xavier`` is Glorot and Bengio's
    (2010) normal form.
    """
    bound = hidden_size**-0.5
    fillers: dict[str, Callable[[Tensor], Tensor]] = {
        "uniform": lambda w: nn.init.uniform_(w, -bound, bound, generator),
        "unit": lambda w: nn.init.uniform_(w, -1, 1, generator),
        "orthogonal": lambda w: nn.init.orthogonal_(w, generator=generator),
        "identity": nn.init.eye_,
        "xavier": lambda w: nn.init.xavier_normal_(w, generator=generator),
    }
    if kind not in fillers:
        raise InputError(f"expected one of {', '.join(fillers)} to fill weights, but got {kind!r}.")
    for block in torch.split(weight.detach(), plain(rows or hidden_size)):
        _fill(block, fillers[kind], generator)
    return weight


def chrono_(bias: Tensor, t_max: int, generator: Generator | None) -> Tensor:
    r"""Fill a forget bias with :math:`\log U[1, T_{max} - 1]`.

    References:
        Tallec and Ollivier (2018), Can recurrent neural networks warp time?, arXiv:1804.11188.
    """
    if t_max < 2:
        raise InputError(
            f"chrono initialisation expects t_max, the longest dependency, to be at least 2 "
            f"steps, but got {t_max}. Try the length of your sequences."
        )
    return _fill(bias, lambda b: b.uniform_(1, t_max - 1, generator=generator).log_(), generator)


def check_chrono(bias: bool, t_max: int | None) -> None:
    """Chrono initialisation is of a bias, so there must be one."""
    if t_max is not None and not bias:
        raise InputError(
            f"chrono initialisation expects a bias, but got t_max={t_max} with bias=False. "
            "Try bias=True."
        )


def check_bias(owner: type, bias: bool, **initial: float | None) -> None:
    """The initial value of a bias is for a cell that has one."""
    for name, value in initial.items():
        if value is not None and not bias:
            raise InputError(
                f"{owner.__name__} expects no {name} with bias=False, but got {value!r}. Leave one "
                "of the two out."
            )


def _fill(tensor: Tensor, draw: Callable[[Tensor], Tensor], generator: Generator | None) -> Tensor:
    """Draw in place, or where the generator lives when that is another device."""
    with torch.no_grad():
        if tensor.device.type == "meta":
            return tensor
        if generator is None or generator.device == tensor.device:
            draw(tensor)
            return tensor
        return tensor.copy_(draw(torch.empty_like(tensor, device=generator.device)))
