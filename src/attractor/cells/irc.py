"""The input residual connection: gated cells with one feedback for all of their gates."""

from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement
from attractor.cells.connected import ConnectedCell, ConnectedInput
from attractor.cells.gated import PLAIN, Biases, Linear, Sites, Taps, joined
from attractor.cells.init import Initialiser, normal_, weights_
from attractor.cells.lstm import LSTMState


class ResidualConnection(nn.Module):
    r"""The correction :math:`\alpha \odot (U_V h_{t-1})`.

    :math:`\alpha` is the sigmoid of ``alpha_raw``, which starts at 2; ``weight`` is :math:`U_V`.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        recurrent_init: Initialiser,
        generator: Generator | None,
        to: Placement,
    ) -> None:
        super().__init__()
        self.alpha_raw = nn.Parameter(torch.full((input_size,), 2.0, **to))
        self.weight = nn.Parameter(torch.empty(input_size, hidden_size, **to))
        weights_(self.weight, recurrent_init, hidden_size, generator, rows=input_size)

    def forward(self, h: Tensor) -> Tensor:
        return torch.sigmoid(self.alpha_raw) * F.linear(h, self.weight)


class ResidualCell(ConnectedCell):
    r"""Gates that read :math:`W v_t`, where :math:`v_t` is the input plus a correction.

    That is the sum of :math:`W x_t`, which is known for all steps at once, and of what the
    correction makes of the memory.
    """

    connects: ClassVar[type[Any]] = ResidualConnection

    def sites(self) -> Sites:
        rows = self.weight_gates.shape[0]
        return Sites((rows,), (rows,), memory=self.hidden_size if self.cell_state else 0)

    def biases(self) -> Biases:
        return self.gate_biases()

    def prepare(self, x: Tensor, linear: Linear = F.linear) -> ConnectedInput:
        x = self.carried(x)
        sums = linear(x, self.weight_gates, joined(self.biases()))
        return ConnectedInput(sums, x, self.candidate(x))

    def read(self, prepared: ConnectedInput, h: Tensor, tap: Taps) -> tuple[Tensor, ...]:
        r"""The gates, :math:`\sigma(W v_t)`."""
        from_h = tap.h(F.linear(self.connection(h), self.weight_gates))
        return torch.sigmoid(tap.x(prepared.sums) + from_h).chunk(self.gates, dim=-1)


class IRCGRUCell(ResidualCell):
    r"""GRU with an input residual connection: the gates read an input corrected by the memory.

    .. math::
        v_t &= x_t + \alpha \odot (U_V h_{t-1}) \\
        i_t, r_t &= \sigma(W_{\{I,R\}} v_t) \\
        a_t &= W_A x_t \\
        h_t &= (1 - i_t) \odot h_{t-1} + i_t \odot (r_t \odot a_t)

    :math:`\alpha` is the sigmoid of ``connection.alpha_raw``; ``connection.weight`` is
    :math:`U_V`. ``weight_gates`` stacks I above R; ``weight_candidate`` is :math:`W_A`.

    Args:
        input_size: features in :math:`x_t` and :math:`v_t`.
        hidden_size: units in :math:`h_t`.
        bias: ``False`` refuses every bias below.
        forget_bias: learn a bias on :math:`i_t` that starts at minus this, which is a bias on
            what keeps the old state, as the released code does (with 1); ``None`` is the paper's,
            which has none.
        t_max: chrono initialisation for dependencies of up to this many steps: learn a bias on
            :math:`i_t` that starts at minus :math:`\log U[1, T_{max} - 1]`.
        input_init: fills ``weight_gates`` and ``weight_candidate``.
        recurrent_init: fills :math:`U_V`.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``, h ``(batch, hidden_size)``; the output is the new h.

    Example:
        >>> cell = IRCGRUCell(3, 8)
        >>> y, h = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> y.shape
        torch.Size([2, 8])

    Departs from the paper: nothing; ``alpha_raw`` starts at 2, as in the released code.

    References:
        Kuo et al. (2020), An input residual connection for simplifying gated recurrent neural
        networks, equations 14 to 17.
    """

    gates = 2
    keeps = -1  # i lets the new in
    cell_state = False

    def step(
        self, prepared: ConnectedInput, state: Tensor, tap: Taps = PLAIN
    ) -> tuple[Tensor, Tensor]:
        i, r = self.read(prepared, state, tap)
        h = (1 - i) * state + i * (r * tap.candidate(prepared.a))
        return h, h


class IRCLSTMCell(ResidualCell):
    r"""LSTM with an input residual connection: the gates read an input corrected by the memory.

    .. math::
        v_t &= x_t + \alpha \odot (U_V h_{t-1}) \\
        f_t, i_t, o_t &= \sigma(W_{\{F,I,O\}} v_t) \\
        a_t &= W_A x_t \\
        c_t &= f_t \odot c_{t-1} + i_t \odot a_t \\
        h_t &= o_t \odot \tanh(c_t)

    :math:`\alpha` is the sigmoid of ``connection.alpha_raw``; ``connection.weight`` is
    :math:`U_V`. ``weight_gates`` stacks F, I, O; ``weight_candidate`` is :math:`W_A`.

    Args:
        input_size: features in :math:`x_t` and :math:`v_t`.
        hidden_size: units in :math:`h_t` and :math:`c_t`.
        bias: ``False`` refuses every bias below.
        forget_bias: learn a bias on :math:`f_t` that starts here, as the released code does for
            its other cells (with 1); ``None`` is the paper's, which has none.
        t_max: chrono initialisation for dependencies of up to this many steps: learn a bias on
            :math:`f_t` that starts at :math:`\log U[1, T_{max} - 1]`.
        input_init: fills ``weight_gates`` and ``weight_candidate``.
        recurrent_init: fills :math:`U_V`.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``; the state is ``(h, c)``, each ``(batch, hidden_size)``; the
        output is the new h.

    Example:
        >>> cell = IRCLSTMCell(3, 8)
        >>> y, (h, c) = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> c.shape
        torch.Size([2, 8])

    Departs from the paper: nothing; ``alpha_raw`` starts at 2, as in the released code.

    References:
        Kuo et al. (2020), An input residual connection for simplifying gated recurrent neural
        networks, equations 22 to 26.
    """

    gates = 3
    cell_state = True

    def step(
        self, prepared: ConnectedInput, state: LSTMState, tap: Taps = PLAIN
    ) -> tuple[Tensor, LSTMState]:
        f, i, o = self.read(prepared, state.h, tap)
        c = f * state.c + i * tap.candidate(prepared.a)
        h = o * torch.tanh(tap.memory(c))
        return h, LSTMState(h, c)


class IRCFastGRNNCell(ResidualCell):
    r"""FastGRNN with an input residual connection: its gate reads a corrected input.

    .. math::
        v_t &= x_t + \alpha \odot (U_V h_{t-1}) \\
        f_t &= \sigma(W_F v_t) \\
        a_t &= W_A x_t \\
        h_t &= f_t \odot h_{t-1} + \beta (1 - f_t) \odot a_t

    :math:`\alpha` and :math:`\beta` are the sigmoids of ``connection.alpha_raw`` and
    ``beta_raw``; ``connection.weight`` is :math:`U_V`, ``weight_gates`` :math:`W_F` and
    ``weight_candidate`` :math:`W_A`.

    Args:
        input_size: features in :math:`x_t` and :math:`v_t`.
        hidden_size: units in :math:`h_t`.
        beta_per_unit: one :math:`\beta` for each unit, drawn from N(0, 0.1²) before the sigmoid,
            as the released code does, instead of one constant, which starts at sigmoid(1).
        bias: ``False`` refuses every bias below.
        forget_bias: learn a bias on :math:`f_t` that starts here, as the released code does
            (with 1); ``None`` is the paper's, which has none.
        t_max: chrono initialisation for dependencies of up to this many steps: learn a bias on
            :math:`f_t` that starts at :math:`\log U[1, T_{max} - 1]`.
        input_init: fills ``weight_gates`` and ``weight_candidate``.
        recurrent_init: fills :math:`U_V`.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``, h ``(batch, hidden_size)``; the output is the new h.

    Example:
        >>> cell = IRCFastGRNNCell(3, 8, beta_per_unit=True)
        >>> y, h = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> y.shape
        torch.Size([2, 8])

    Departs from the paper: nothing; ``alpha_raw`` starts at 2, as in the released code.

    References:
        Kuo et al. (2020), An input residual connection for simplifying gated recurrent neural
        networks, equations 48 to 51.
    """

    gates = 1
    cell_state = False

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        beta_per_unit: bool = False,
        bias: bool = True,
        forget_bias: float | None = None,
        t_max: int | None = None,
        input_init: Initialiser = "uniform",
        recurrent_init: Initialiser = "uniform",
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            input_size,
            hidden_size,
            bias=bias,
            forget_bias=forget_bias,
            t_max=t_max,
            input_init=input_init,
            recurrent_init=recurrent_init,
            generator=generator,
            device=device,
            dtype=dtype,
        )
        shape = (hidden_size,) if beta_per_unit else ()
        self.beta_raw = nn.Parameter(torch.ones(shape, device=device, dtype=dtype))
        if beta_per_unit:
            normal_(self.beta_raw, 0.1, generator)

    def candidate(self, x: Tensor) -> Tensor:
        # beta stands before a factor of its own units, so it can be taken into the candidate
        return torch.sigmoid(self.beta_raw) * F.linear(x, self.weight_candidate)

    def step(
        self, prepared: ConnectedInput, state: Tensor, tap: Taps = PLAIN
    ) -> tuple[Tensor, Tensor]:
        (f,) = self.read(prepared, state, tap)
        h = f * state + (1 - f) * tap.candidate(prepared.a)
        return h, h
