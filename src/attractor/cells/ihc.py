"""The input highway connection: gated cells simplified, with a gate on what they read."""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement
from attractor.cells.connected import ConnectedCell, ConnectedInput
from attractor.cells.gated import PLAIN, Biases, Linear, Sites, Taps, joined
from attractor.cells.init import Initialiser, uniform_, weights_
from attractor.cells.lstm import LSTMState


class HighwayConnection(nn.Module):
    r"""``weight`` stacks :math:`U_V` above :math:`\Gamma`, so that both are one matrix product.

    ``weight_gate`` is :math:`W_G` and ``bias_gate`` is :math:`b_G`, where there are any.
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
        self.weight = nn.Parameter(torch.empty(2 * input_size, hidden_size, **to))
        self.weight_gate: nn.Parameter | None = None
        self.bias_gate: nn.Parameter | None = None
        weights_(self.weight, recurrent_init, hidden_size, generator, rows=input_size)


class HighwayCell(ConnectedCell):
    r"""Gates that read :math:`W v_t`, where a gate of its own mixes input and memory in v.

    .. math::
        g_t &= \sigma(W_G x_t + \Gamma h_{t-1} + b_G) \\
        v_t &= (1 - g_t) \odot x_t + g_t \odot (U_V h_{t-1})
    """

    connects = HighwayConnection

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        gate_reads_input: bool = True,
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
        self.gate_reads_input = gate_reads_input
        if gate_reads_input:
            to: Placement = {"device": device, "dtype": dtype}
            weight = nn.Parameter(torch.empty(input_size, input_size, **to))
            uniform_(weight, hidden_size**-0.5, generator)
            self.connection.weight_gate = weight
            if bias:
                self.connection.bias_gate = nn.Parameter(torch.zeros(input_size, **to))

    def sites(self) -> Sites:
        n, rows = self.input_size, self.weight_gates.shape[0]
        memory = self.hidden_size if self.cell_state else 0
        return Sites((n,) if self.gate_reads_input else (), (n, n), inner=(rows,), memory=memory)

    def biases(self) -> Biases:
        bias: Tensor | None = self.connection.bias_gate
        return (self.input_size if bias is None else bias,)

    def prepare(self, x: Tensor, linear: Linear = F.linear) -> ConnectedInput:
        weight, bias = self.connection.weight_gate, self.connection.bias_gate
        sums = x[..., :0] if weight is None else linear(x, weight, bias)
        return ConnectedInput(sums, x, self.candidate(x))

    def read(self, prepared: ConnectedInput, h: Tensor, tap: Taps) -> tuple[Tensor, ...]:
        r"""The gates, :math:`\sigma(W v_t)`."""
        u, gamma = tap.h(F.linear(h, self.connection.weight)).chunk(2, dim=-1)
        g = torch.sigmoid(tap.x(prepared.sums) + gamma if self.gate_reads_input else gamma)
        v = (1 - g) * prepared.x + g * u
        sums, bias = tap.inner(F.linear(v, self.weight_gates)), joined(self.gate_biases())
        return torch.sigmoid(sums if bias is None else sums + bias).chunk(self.gates, dim=-1)


class IHCLSTMCell(HighwayCell):
    r"""LSTM with an input highway connection: the gates read a mix of input and memory.

    .. math::
        g_t &= \sigma(W_G x_t + \Gamma h_{t-1} + b_G) \\
        v_t &= (1 - g_t) \odot x_t + g_t \odot (U_V h_{t-1}) \\
        f_t, i_t, o_t &= \sigma(W_{\{F,I,O\}} v_t) \\
        a_t &= W_A x_t \\
        c_t &= f_t \odot c_{t-1} + i_t \odot a_t \\
        h_t &= o_t \odot \tanh(c_t)

    ``weight_gates`` stacks F, I, O; ``weight_candidate`` is :math:`W_A`; ``connection`` holds the
    rest.

    Args:
        input_size: features in :math:`x_t`, :math:`v_t` and :math:`g_t`.
        hidden_size: units in :math:`h_t` and :math:`c_t`.
        gate_reads_input: ``False`` leaves out :math:`W_G` and :math:`b_G`, as the released language
            model does: :math:`g_t = \sigma(\Gamma h_{t-1})`.
        bias: learn :math:`b_G`; ``False`` also refuses the biases below.
        forget_bias: learn a bias on :math:`f_t` that starts here, as the released code does
            (with 1); ``None`` is the paper's, which has none.
        t_max: chrono initialisation for dependencies of up to this many steps: learn a bias on
            :math:`f_t` that starts at :math:`\log U[1, T_{max} - 1]`.
        input_init: fills ``weight_gates`` and ``weight_candidate``.
        recurrent_init: fills :math:`U_V` and :math:`\Gamma`.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``; the state is ``(h, c)``, each ``(batch, hidden_size)``; the
        output is the new h.

    Example:
        >>> cell = IHCLSTMCell(20, 20)
        >>> sum(p.numel() for p in cell.parameters())
        2820

    Departs from the paper: nothing. The released language model leaves out :math:`W_G` and
    :math:`b_G` (``gate_reads_input=False``); with them the count is the published one.

    References:
        Kuo et al. (2020), An input residual connection for simplifying gated recurrent neural
        networks, equations 52, 53 and 23 to 26.
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


class IHCGRUCell(HighwayCell):
    r"""GRU with an input highway connection: the gates read a mix of input and memory.

    .. math::
        g_t &= \sigma(W_G x_t + \Gamma h_{t-1} + b_G) \\
        v_t &= (1 - g_t) \odot x_t + g_t \odot (U_V h_{t-1}) \\
        i_t, r_t &= \sigma(W_{\{I,R\}} v_t) \\
        a_t &= W_A x_t \\
        h_t &= (1 - i_t) \odot h_{t-1} + i_t \odot (r_t \odot a_t)

    ``weight_gates`` stacks I above R; ``weight_candidate`` is :math:`W_A`; ``connection`` holds
    the rest.

    Args:
        input_size: features in :math:`x_t`, :math:`v_t` and :math:`g_t`.
        hidden_size: units in :math:`h_t`.
        gate_reads_input: ``False`` leaves out :math:`W_G` and :math:`b_G`, as the released language
            model does: :math:`g_t = \sigma(\Gamma h_{t-1})`.
        bias: learn :math:`b_G`; ``False`` also refuses the biases below.
        forget_bias: learn a bias on :math:`i_t` that starts at minus this, which is a bias on
            what keeps the old state; ``None`` for no bias.
        t_max: chrono initialisation for dependencies of up to this many steps: learn a bias on
            :math:`i_t` that starts at minus :math:`\log U[1, T_{max} - 1]`.
        input_init: fills ``weight_gates`` and ``weight_candidate``.
        recurrent_init: fills :math:`U_V` and :math:`\Gamma`.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``, h ``(batch, hidden_size)``; the output is the new h.

    Example:
        >>> import torch
        >>> cell = IHCGRUCell(3, 8)
        >>> y, h = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> y.shape
        torch.Size([2, 8])

    Departs from the paper: the paper has the highway on the LSTM only; here it takes the place of
    the residual connection in the IRC-GRU.

    References:
        Kuo et al. (2020), An input residual connection for simplifying gated recurrent neural
        networks, equations 52, 53, 16, 14 and 17.
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
