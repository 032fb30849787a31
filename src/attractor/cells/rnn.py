"""The plain recurrent network."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement, zeros_like_parameters
from attractor.cells.gated import PLAIN, GatedCell, Linear, Taps
from attractor.cells.init import Initialiser, weights_
from attractor.cells.wrap.normalise import UnitNorm
from attractor.errors import InputError


class RNNCell(GatedCell[Tensor, Tensor]):
    r"""Plain recurrent network, with tanh or ReLU.

    .. math::
        h_t = f(U x_t + W h_{t-1} + b)

    With ``layer_norm``, :math:`h_t = f(\mathrm{LN}(U x_t + W h_{t-1}))`, whose shift takes the
    place of :math:`b`. ``weight_ih`` is :math:`U`, ``weight_hh`` is :math:`W`.

    Args:
        input_size: features in :math:`x_t`.
        hidden_size: units in :math:`h_t`.
        bias: learn :math:`b`.
        nonlinearity: :math:`f`, ``"tanh"`` or ``"relu"``.
        layer_norm: normalise the pre-activation over the units.
        input_init: fills ``weight_ih``.
        recurrent_init: fills ``weight_hh``; ``"orthogonal"`` and ``"identity"`` give the thesis's
            RNN-orth and RNN-id.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``, h ``(batch, hidden_size)``; the output is the new h.

    Example:
        >>> cell = RNNCell(3, 8, nonlinearity="relu", recurrent_init="identity")
        >>> y, h = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> y.shape
        torch.Size([2, 8])

    Departs from the paper: nothing. Against ``nn.RNN``: one bias instead of two that are added,
    and it starts at zero.

    References:
        Elman (1990), Finding structure in time; Chandar (2020), equation 2.8; Le et al. (2015),
        arXiv:1504.00941, for the identity; Ba et al. (2016), arXiv:1607.06450, for layer norm.
    """

    reference = "elman1990finding"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        bias: bool = True,
        nonlinearity: Literal["tanh", "relu"] = "tanh",
        layer_norm: bool = False,
        input_init: Initialiser = "uniform",
        recurrent_init: Initialiser = "uniform",
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        if nonlinearity not in ("tanh", "relu"):
            raise InputError(
                f"RNNCell expects nonlinearity 'tanh' or 'relu', but got {nonlinearity!r}."
            )
        to: Placement = {"device": device, "dtype": dtype}
        self.nonlinearity = nonlinearity
        self.weight_ih = nn.Parameter(torch.empty(hidden_size, input_size, **to))
        self.weight_hh = nn.Parameter(torch.empty(hidden_size, hidden_size, **to))
        self.bias = (
            nn.Parameter(torch.zeros(hidden_size, **to)) if bias and not layer_norm else None
        )
        self.norm = UnitNorm(hidden_size, bias=bias, **to) if layer_norm else None
        weights_(self.weight_ih, input_init, hidden_size, generator)
        weights_(self.weight_hh, recurrent_init, hidden_size, generator)

    def initial_state(self, batch_size: int) -> Tensor:
        return zeros_like_parameters(self, batch_size, self.hidden_size)

    def prepare(self, x: Tensor, linear: Linear = F.linear) -> Tensor:
        return linear(x, self.weight_ih, self.bias)

    def step(self, prepared: Tensor, state: Tensor, tap: Taps = PLAIN) -> tuple[Tensor, Tensor]:
        a = tap.x(prepared) + tap.h(F.linear(state, self.weight_hh))
        if self.norm is not None:
            a = self.norm(a)
        h = tap.candidate(torch.relu(a) if self.nonlinearity == "relu" else torch.tanh(a))
        h = h.to(state.dtype)
        return h, h
