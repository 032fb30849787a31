"""Strongly-typed long short-term memory."""

from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement, zeros_like_parameters
from attractor.cells.gated import PLAIN, GatedCell, Linear, Sites, Taps
from attractor.cells.init import Initialiser, check_chrono, chrono_, weights_
from attractor.errors import InputError


class TLSTMInput(NamedTuple):
    """The sums, and what this input will add to those of the next step."""

    sums: Tensor
    u: Tensor


class TLSTMState(NamedTuple):
    """Cell state, and the last input as seen through U."""

    c: Tensor
    u: Tensor


class TLSTMCell(GatedCell[TLSTMInput, TLSTMState]):
    r"""Strongly-typed LSTM: its gates read the last two inputs and never the memory.

    .. math::
        f_t, o_t &= \sigma(W_{\{F,O\}} x_t + U_{\{F,O\}} x_{t-1} + b_{\{F,O\}}) \\
        a_t &= W_A x_t + U_A x_{t-1} + b_A \\
        c_t &= f_t \odot c_{t-1} + (1 - f_t) \odot a_t \\
        h_t &= o_t \odot c_t

    ``weight_ih``, ``weight_previous`` (U) and ``bias`` stack F, O, A.

    Args:
        input_size: features in :math:`x_t`.
        hidden_size: units in :math:`c_t` and in the output.
        bias: learn the biases.
        output_gate: ``"sigmoid"`` as above, or ``"tanh"`` as in the original.
        forget_bias: initial :math:`b_F`; the other biases start at zero.
        t_max: chrono initialisation for dependencies of up to this many steps:
            :math:`b_F = \log U[1, T_{max} - 1]`.
        input_init: fills ``weight_ih`` and ``weight_previous``.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``; the state is c ``(batch, hidden_size)`` and :math:`U x_t`
        ``(batch, 3 * hidden_size)``; the output h is ``(batch, hidden_size)``.

    Example:
        >>> cell = TLSTMCell(3, 8)
        >>> h, (c, u) = cell(torch.ones(2, 3), cell.initial_state(2))
        >>> h.shape, u.shape
        (torch.Size([2, 8]), torch.Size([2, 24]))

    Departs from the paper: the state keeps :math:`U x_{t-1}` and not :math:`x_{t-1}`. It is known
    for all steps at once, so that a step has no matrix product, and is as long in every layer. A
    state that is carried on from one piece of a sequence to the next therefore holds a product
    with the weights of the first, and gives :math:`U` no gradient at the first step of the second.
    The input before the first is zero. ``output_gate="tanh"`` is Balduzzi and Ghifary's.

    References:
        Balduzzi and Ghifary (2016), Strongly-typed recurrent neural networks, arXiv:1602.02218;
        Kuo et al. (2020), equations 36 to 39.
    """

    reference = "balduzzi2016strongly"
    recurrent_weights = ("weight_previous",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        bias: bool = True,
        output_gate: Literal["sigmoid", "tanh"] = "sigmoid",
        forget_bias: float = 0.0,
        t_max: int | None = None,
        input_init: Initialiser = "uniform",
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        check_chrono(bias, t_max)
        if output_gate not in ("sigmoid", "tanh"):
            raise InputError(
                f"TLSTMCell expects output_gate 'sigmoid' or 'tanh', but got {output_gate!r}."
            )
        to: Placement = {"device": device, "dtype": dtype}
        self.output_gate = output_gate
        self.weight_ih = nn.Parameter(torch.empty(3 * hidden_size, input_size, **to))
        self.weight_previous = nn.Parameter(torch.empty(3 * hidden_size, input_size, **to))
        self.bias = nn.Parameter(torch.zeros(3 * hidden_size, **to)) if bias else None
        weights_(self.weight_ih, input_init, hidden_size, generator)
        weights_(self.weight_previous, input_init, hidden_size, generator)
        if self.bias is not None:
            f, _, _ = self.bias.detach().chunk(3)
            f.fill_(forget_bias)
            if t_max is not None:
                chrono_(f, t_max, generator)

    def initial_state(self, batch_size: int) -> TLSTMState:
        return TLSTMState(
            zeros_like_parameters(self, batch_size, self.hidden_size),
            zeros_like_parameters(self, batch_size, 3 * self.hidden_size),
        )

    def sites(self) -> Sites:
        return super().sites()._replace(memory=self.hidden_size)

    def prepare(self, x: Tensor, linear: Linear = F.linear) -> TLSTMInput:
        return TLSTMInput(linear(x, self.weight_ih, self.bias), F.linear(x, self.weight_previous))

    def step(
        self, prepared: TLSTMInput, state: TLSTMState, tap: Taps = PLAIN
    ) -> tuple[Tensor, TLSTMState]:
        f, o, a = (tap.x(prepared.sums) + tap.h(state.u)).chunk(3, dim=-1)
        f = torch.sigmoid(f)
        c = f * state.c + (1 - f) * tap.candidate(a)
        o = torch.tanh(o) if self.output_gate == "tanh" else torch.sigmoid(o)
        return o * tap.memory(c), TLSTMState(c, prepared.u)
