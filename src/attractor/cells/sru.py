"""Simple recurrent unit."""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement, zeros_like_parameters
from attractor.cells.gated import PLAIN, GatedCell, Linear, Sites, Taps
from attractor.cells.init import Initialiser, check_chrono, chrono_, uniform_, weights_


class SRUInput(NamedTuple):
    """The input's part of the gates, the candidate, and what the highway carries."""

    sums: Tensor
    candidate: Tensor
    carried: Tensor


class SRUCell(GatedCell[SRUInput, Tensor]):
    r"""Simple recurrent unit: all matrices read the input, so a step is elementwise.

    .. math::
        f_t, p_t &= \sigma(W_{\{F,P\}} x_t + \omega_{\{F,P\}} \odot c_{t-1} + b_{\{F,P\}}) \\
        a_t &= W_A x_t \\
        c_t &= f_t \odot c_{t-1} + (1 - f_t) \odot a_t \\
        h_t &= p_t \odot c_t + (1 - p_t) \odot x_t

    Where ``input_size`` differs from ``hidden_size``, :math:`W_X x_t` takes the place of
    :math:`x_t` in the last line. ``weight_ih`` stacks F, P, A and then X, if there is one;
    ``omega`` and ``bias`` stack F above P.

    Args:
        input_size: features in :math:`x_t`.
        hidden_size: units in :math:`c_t` and in the output.
        bias: learn the biases.
        forget_bias: initial :math:`b_F`.
        highway_bias: initial :math:`b_P`; negative to begin with more of the input.
        rescale: multiply :math:`x_t` in the last line by :math:`\sqrt{1 + 2 e^b}`, where b is
            ``highway_bias``, which keeps the variance from layer to layer; where there is a
            :math:`W_X`, its initial weights take the factor instead.
        t_max: chrono initialisation for dependencies of up to this many steps:
            :math:`b_F = \log U[1, T_{max} - 1]`.
        input_init: fills ``weight_ih``; ``None`` is the paper's U(±sqrt(3 / input_size)).
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``; the state c and the output h are ``(batch, hidden_size)``.

    Example:
        >>> cell = SRUCell(3, 8, highway_bias=-1.0)
        >>> h, c = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> h.shape, c.shape
        (torch.Size([2, 8]), torch.Size([2, 8]))

    Departs from the paper: nothing of Kuo et al. with ``input_size == hidden_size``; the matrix
    for other sizes and ``rescale`` are Lei et al.'s. :math:`\omega` starts at
    U(±1/sqrt(hidden_size)), which neither says.

    References:
        Lei et al. (2018), Simple recurrent units for highly parallelizable recurrence,
        arXiv:1709.02755; Kuo et al. (2020), equations 27 to 30.
    """

    reference = "lei2018simple"
    state_name = "c"
    recurrent_weights = ("omega",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        bias: bool = True,
        forget_bias: float = 0.0,
        highway_bias: float = 0.0,
        rescale: bool = False,
        t_max: int | None = None,
        input_init: Initialiser | None = None,
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        check_chrono(bias, t_max)
        to: Placement = {"device": device, "dtype": dtype}
        scale = math.sqrt(1 + 2 * math.exp(highway_bias)) if rescale else 1.0
        square = input_size == hidden_size
        self.scale = scale if square else 1.0
        rows = (3 if square else 4) * hidden_size
        self.weight_ih = nn.Parameter(torch.empty(rows, input_size, **to))
        self.omega = nn.Parameter(torch.empty(2 * hidden_size, **to))
        self.bias = nn.Parameter(torch.zeros(2 * hidden_size, **to)) if bias else None
        if input_init is None:
            uniform_(self.weight_ih, math.sqrt(3 / input_size), generator)
        else:
            weights_(self.weight_ih, input_init, hidden_size, generator)
        self.weight_ih.detach()[3 * hidden_size :].mul_(scale)
        uniform_(self.omega, hidden_size**-0.5, generator)
        if self.bias is not None:
            f, p = self.bias.detach().chunk(2)
            f.fill_(forget_bias)
            p.fill_(highway_bias)
            if t_max is not None:
                chrono_(f, t_max, generator)

    def initial_state(self, batch_size: int) -> Tensor:
        return zeros_like_parameters(self, batch_size, self.hidden_size)

    def sites(self) -> Sites:
        n = self.hidden_size
        return Sites((2 * n,), (2 * n,), memory=n)

    def prepare(self, x: Tensor, linear: Linear = F.linear) -> SRUInput:
        n = self.hidden_size
        sums = linear(x, self.weight_ih[: 2 * n], self.bias)
        rest = F.linear(x, self.weight_ih[2 * n :])
        carried = x if self.input_size == n else rest[..., n:]
        return SRUInput(sums, rest[..., :n], carried if self.scale == 1 else self.scale * carried)

    def step(self, prepared: SRUInput, state: Tensor, tap: Taps = PLAIN) -> tuple[Tensor, Tensor]:
        c = state
        from_c = tap.h(self.omega * torch.cat([c, c], dim=-1))
        f, p = torch.sigmoid(tap.x(prepared.sums) + from_c).chunk(2, dim=-1)
        c = f * c + (1 - f) * tap.candidate(prepared.candidate)
        h = p * tap.memory(c) + (1 - p) * prepared.carried
        return h, c
