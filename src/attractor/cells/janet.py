"""Just another network: an LSTM with only the forget gate."""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement, zeros_like_parameters
from attractor.cells.gated import PLAIN, GatedCell, Linear, Taps
from attractor.cells.init import Initialiser, check_chrono, chrono_, weights_


class JANETCell(GatedCell[Tensor, Tensor]):
    r"""Just another network (JANET): one gate, which forgets less than it lets in by beta.

    .. math::
        s_t &= W_{xf} x_t + W_{hf} h_{t-1} + b_f \\
        \tilde h_t &= \tanh(W_{xh} x_t + W_{hh} h_{t-1} + b_h) \\
        h_t &= \sigma(s_t) \odot h_{t-1} + (1 - \sigma(s_t - \beta)) \odot \tilde h_t

    ``weight_ih``, ``weight_hh`` and ``bias`` stack f above h.

    Args:
        input_size: features in :math:`x_t`.
        hidden_size: units in :math:`h_t`.
        bias: learn the biases.
        beta: how much more information accumulates than is forgotten; 0 couples the gates.
        forget_bias: initial :math:`b_f`.
        t_max: chrono initialisation for dependencies of up to this many steps:
            :math:`b_f = \log U[1, T_{max} - 1]`.
        input_init: fills ``weight_ih``.
        recurrent_init: fills ``weight_hh``.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``, h ``(batch, hidden_size)``; the output is the new h.

    Example:
        >>> cell = JANETCell(3, 8, t_max=100)
        >>> y, h = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> y.shape
        torch.Size([2, 8])

    Departs from the paper: nothing; beta is 1 by default, as in the authors' code, and the
    baseline of the NRU chapter is ``beta=0``.

    References:
        Van der Westhuizen and Lasenby (2018), The unreasonable effectiveness of the forget gate,
        arXiv:1804.04849; Chandar (2020), equations 2.34 to 2.39.
    """

    reference = "westhuizen2018unreasonable"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        bias: bool = True,
        beta: float = 1.0,
        forget_bias: float = 1.0,
        t_max: int | None = None,
        input_init: Initialiser = "uniform",
        recurrent_init: Initialiser = "uniform",
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        check_chrono(bias, t_max)
        to: Placement = {"device": device, "dtype": dtype}
        self.beta: Tensor
        # a tensor, since a compiled loop takes no float from outside
        self.register_buffer("beta", torch.tensor(float(beta), **to))
        self.weight_ih = nn.Parameter(torch.empty(2 * hidden_size, input_size, **to))
        self.weight_hh = nn.Parameter(torch.empty(2 * hidden_size, hidden_size, **to))
        self.bias = nn.Parameter(torch.zeros(2 * hidden_size, **to)) if bias else None
        weights_(self.weight_ih, input_init, hidden_size, generator)
        weights_(self.weight_hh, recurrent_init, hidden_size, generator)
        if self.bias is not None:
            f, _ = self.bias.detach().chunk(2)
            f.fill_(forget_bias)
            if t_max is not None:
                chrono_(f, t_max, generator)

    def initial_state(self, batch_size: int) -> Tensor:
        return zeros_like_parameters(self, batch_size, self.hidden_size)

    def prepare(self, x: Tensor, linear: Linear = F.linear) -> Tensor:
        return linear(x, self.weight_ih, self.bias)

    def step(self, prepared: Tensor, state: Tensor, tap: Taps = PLAIN) -> tuple[Tensor, Tensor]:
        s, a = (tap.x(prepared) + tap.h(F.linear(state, self.weight_hh))).chunk(2, dim=-1)
        new = (1 - torch.sigmoid(s - self.beta)) * tap.candidate(torch.tanh(a))
        h = torch.sigmoid(s) * state + new
        return h, h
