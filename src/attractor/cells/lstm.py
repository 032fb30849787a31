"""Long short-term memory."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement, zeros_like_parameters
from attractor.cells.gated import PLAIN, GatedCell, Linear, Sites, Taps
from attractor.cells.init import Initialiser, check_chrono, chrono_, uniform_, weights_
from attractor.errors import InputError


class LSTMState(NamedTuple):
    """Hidden state and cell state."""

    h: Tensor
    c: Tensor


class LSTMCell(GatedCell[Tensor, LSTMState]):
    r"""Long short-term memory, with optional peepholes, chrono initialisation and projection.

    .. math::
        i_t &= \sigma(W_{xi} x_t + W_{hi} h_{t-1} + w_{ci} \odot c_{t-1} + b_i) \\
        f_t &= \sigma(W_{xf} x_t + W_{hf} h_{t-1} + w_{cf} \odot c_{t-1} + b_f) \\
        \tilde c_t &= \tanh(W_{xc} x_t + W_{hc} h_{t-1} + b_c) \\
        c_t &= f_t \odot c_{t-1} + i_t \odot \tilde c_t \\
        o_t &= \sigma(W_{xo} x_t + W_{ho} h_{t-1} + w_{co} \odot c_t + b_o) \\
        h_t &= o_t \odot \tanh(c_t)

    The :math:`w_c` terms are there with ``peepholes`` only. ``weight_ih``, ``weight_hh`` and
    ``bias`` stack i, f, c, o in torch's order; ``peephole`` stacks i, f, o.

    Args:
        input_size: features in :math:`x_t`.
        hidden_size: units in :math:`c_t` (and in :math:`h_t`, unless projected).
        bias: learn the biases.
        forget_bias: initial :math:`b_f`; the other biases start at zero.
        t_max: chrono initialisation for dependencies of up to this many steps:
            :math:`b_f = \log U[1, T_{max} - 1]` and :math:`b_i = -b_f`.
        peepholes: let the gates see the cell state.
        proj_size: as in ``nn.LSTM``: if positive, :math:`h_t` is projected to this size.
        input_init: fills ``weight_ih``.
        recurrent_init: fills ``weight_hh``.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``; the state is ``(h, c)``, each ``(batch, hidden_size)``; the
        output is the new h.

    Example:
        >>> cell = LSTMCell(3, 8, t_max=100)
        >>> y, (h, c) = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> c.shape
        torch.Size([2, 8])

    Departs from the paper: peepholes are off by default, though the thesis usually has them, so
    that the cell is ``nn.LSTM``. Against ``nn.LSTM``: one bias instead of two that are added, and
    the forget bias starts at 1.

    References:
        Hochreiter and Schmidhuber (1997), Long short-term memory; Gers et al. (2000, 2002);
        Chandar (2020), equations 2.17 to 2.29.
    """

    reference = "hochreiter1997long"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        bias: bool = True,
        forget_bias: float = 1.0,
        t_max: int | None = None,
        peepholes: bool = False,
        proj_size: int = 0,
        input_init: Initialiser = "uniform",
        recurrent_init: Initialiser = "uniform",
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        check_chrono(bias, t_max)
        if not 0 <= proj_size < hidden_size:
            raise InputError(
                f"LSTMCell expects proj_size from 0 (none) to hidden_size - 1 = {hidden_size - 1}, "
                f"but got {proj_size}."
            )
        to: Placement = {"device": device, "dtype": dtype}
        self.proj_size = proj_size
        self.weight_ih = nn.Parameter(torch.empty(4 * hidden_size, input_size, **to))
        self.weight_hh = nn.Parameter(torch.empty(4 * hidden_size, self.output_size, **to))
        self.bias = nn.Parameter(torch.zeros(4 * hidden_size, **to)) if bias else None
        self.peephole = nn.Parameter(torch.empty(3, hidden_size, **to)) if peepholes else None
        self.weight_hr = (
            nn.Parameter(torch.empty(proj_size, hidden_size, **to)) if proj_size else None
        )
        weights_(self.weight_ih, input_init, hidden_size, generator)
        weights_(self.weight_hh, recurrent_init, hidden_size, generator)
        for extra in (self.peephole, self.weight_hr):
            if extra is not None:
                uniform_(extra, hidden_size**-0.5, generator)
        if self.bias is not None:
            i, f, _, _ = self.bias.detach().chunk(4)
            f.fill_(forget_bias)
            if t_max is not None:
                i.copy_(-chrono_(f, t_max, generator))

    @property
    def output_size(self) -> int:
        return self.proj_size or self.hidden_size

    def initial_state(self, batch_size: int) -> LSTMState:
        return LSTMState(
            zeros_like_parameters(self, batch_size, self.output_size),
            zeros_like_parameters(self, batch_size, self.hidden_size),
        )

    def sites(self) -> Sites:
        return super().sites()._replace(memory=self.hidden_size)

    def prepare(self, x: Tensor, linear: Linear = F.linear) -> Tensor:
        return linear(x, self.weight_ih, self.bias)

    def step(
        self, prepared: Tensor, state: LSTMState, tap: Taps = PLAIN
    ) -> tuple[Tensor, LSTMState]:
        h, c = state
        i, f, a, o = (tap.x(prepared) + tap.h(F.linear(h, self.weight_hh))).chunk(4, dim=-1)
        if self.peephole is not None:
            i = i + self.peephole[0] * c
            f = f + self.peephole[1] * c
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * tap.candidate(torch.tanh(a))
        if self.peephole is not None:
            o = o + self.peephole[2] * c
        h = torch.sigmoid(o) * torch.tanh(tap.memory(c))
        if self.weight_hr is not None:
            h = F.linear(h, self.weight_hr).to(c.dtype)
        return h, LSTMState(h, c)
