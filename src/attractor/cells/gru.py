"""Gated recurrent unit."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement, zeros_like_parameters
from attractor.cells.gated import PLAIN, GatedCell, Linear, Sites, Taps
from attractor.cells.init import Initialiser, check_chrono, chrono_, weights_
from attractor.errors import InputError


class GRUCell(GatedCell[Tensor, Tensor]):
    r"""Gated recurrent unit, resetting before the recurrent matmul or after it.

    .. math::
        z_t &= \sigma(W_{xz} x_t + W_{hz} h_{t-1} + b_z) \\
        r_t &= \sigma(W_{xr} x_t + W_{hr} h_{t-1} + b_r) \\
        \tilde h_t &= \tanh(W_{xh} x_t + W_{hh} (r_t \odot h_{t-1}) + b_h) \\
        h_t &= (1 - z_t) \odot h_{t-1} + z_t \odot \tilde h_t

    With ``reset="after"`` the candidate is
    :math:`\tanh(W_{xh} x_t + b_h + r_t \odot (W_{hh} h_{t-1} + b_{hh}))`, as in ``nn.GRU``.
    ``weight_ih``, ``weight_hh`` and ``bias`` stack r, z, h in torch's order; ``bias_hh`` is there
    with ``reset="after"`` only.

    Args:
        input_size: features in :math:`x_t`.
        hidden_size: units in :math:`h_t`.
        bias: learn the biases.
        reset: ``"before"`` the matmul (the paper) or ``"after"`` it (torch).
        t_max: chrono initialisation for dependencies of up to this many steps:
            :math:`b_z = -\log U[1, T_{max} - 1]`.
        input_init: fills ``weight_ih``.
        recurrent_init: fills ``weight_hh``.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``, h ``(batch, hidden_size)``; the output is the new h.

    Example:
        >>> cell = GRUCell(3, 8, reset="after")
        >>> y, h = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> y.shape
        torch.Size([2, 8])

    Departs from the paper: nothing. Against ``nn.GRU``: :math:`z` lets the new in, not the old
    stay (the weights of one are the negative of the other's), and biases start at zero.

    References:
        Cho et al. (2014), arXiv:1406.1078; Chandar (2020), equations 2.30 to 2.33.
    """

    reference = "cho2014learning"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        bias: bool = True,
        reset: Literal["before", "after"] = "before",
        t_max: int | None = None,
        input_init: Initialiser = "uniform",
        recurrent_init: Initialiser = "uniform",
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        check_chrono(bias, t_max)
        if reset not in ("before", "after"):
            raise InputError(f"GRUCell expects reset 'before' or 'after', but got {reset!r}.")
        to: Placement = {"device": device, "dtype": dtype}
        self.reset = reset
        self.weight_ih = nn.Parameter(torch.empty(3 * hidden_size, input_size, **to))
        self.weight_hh = nn.Parameter(torch.empty(3 * hidden_size, hidden_size, **to))
        self.bias = nn.Parameter(torch.zeros(3 * hidden_size, **to)) if bias else None
        self.bias_hh = (
            nn.Parameter(torch.zeros(hidden_size, **to)) if bias and reset == "after" else None
        )
        weights_(self.weight_ih, input_init, hidden_size, generator)
        weights_(self.weight_hh, recurrent_init, hidden_size, generator)
        if self.bias is not None and t_max is not None:
            _, z, _ = self.bias.detach().chunk(3)
            chrono_(z, t_max, generator).neg_()

    def initial_state(self, batch_size: int) -> Tensor:
        return zeros_like_parameters(self, batch_size, self.hidden_size)

    def sites(self) -> Sites:
        gates, candidate = 2 * self.hidden_size, self.hidden_size
        if self.reset == "before":
            return Sites((gates, candidate), (gates,), inner=(candidate,))
        return Sites((gates, candidate), (gates, candidate))

    def prepare(self, x: Tensor, linear: Linear = F.linear) -> Tensor:
        return linear(x, self.weight_ih, self.bias)

    def step(self, prepared: Tensor, state: Tensor, tap: Taps = PLAIN) -> tuple[Tensor, Tensor]:
        h, n = state, 2 * self.hidden_size
        from_x = tap.x(prepared)
        U = self.weight_hh[:n] if self.reset == "before" else self.weight_hh
        from_h = tap.h(F.linear(h, U))
        r, z = torch.sigmoid(from_x[..., :n] + from_h[..., :n]).chunk(2, dim=-1)
        if self.reset == "before":
            inner = tap.inner(F.linear(r * h, self.weight_hh[n:]))
        elif self.bias_hh is None:
            inner = r * from_h[..., n:]
        else:
            inner = r * (from_h[..., n:] + self.bias_hh)
        a = torch.tanh(from_x[..., n:] + inner)
        h = (1 - z) * h + z * tap.candidate(a)
        return h, h
