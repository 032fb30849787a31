"""The input residual connection without a matrix: SRU and T-LSTM, whose steps are elementwise."""

import torch
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement
from attractor.cells.connected import ConnectedInput
from attractor.cells.gated import PLAIN, Taps
from attractor.cells.init import Initialiser, check_bias, uniform_
from attractor.cells.irc import ResidualCell
from attractor.cells.lstm import LSTMState


class DiagonalConnection(nn.Module):
    r"""The correction :math:`\alpha \odot (\omega_V \odot h_{t-1})`.

    :math:`\omega_V` is the tanh of ``omega_raw``, which starts at U(±1/sqrt(hidden_size)).
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
        self.alpha_raw = nn.Parameter(torch.full((hidden_size,), 2.0, **to))
        self.omega_raw = nn.Parameter(torch.empty(hidden_size, **to))
        uniform_(self.omega_raw, hidden_size**-0.5, generator)

    def forward(self, h: Tensor) -> Tensor:
        return torch.sigmoid(self.alpha_raw) * (torch.tanh(self.omega_raw) * h)


class IRCSRUCell(ResidualCell):
    r"""SRU with an input residual connection: the gates read an input corrected by the output.

    .. math::
        v_t &= x_t + \alpha \odot (\omega_V \odot h_{t-1}) \\
        f_t, p_t &= \sigma(W_{\{F,P\}} v_t) \\
        a_t &= W_A x_t \\
        c_t &= f_t \odot c_{t-1} + (1 - f_t) \odot a_t \\
        h_t &= p_t \odot c_t + (1 - p_t) \odot x_t

    :math:`\alpha` and :math:`\omega_V` are the sigmoid of ``connection.alpha_raw`` and the tanh of
    ``connection.omega_raw``. ``weight_gates`` stacks F above P; ``weight_candidate`` is
    :math:`W_A`.

    Args:
        input_size: features in :math:`x_t`.
        hidden_size: units in :math:`h_t` and :math:`c_t`.
        bias: ``False`` refuses every bias below.
        highway_bias: learn a bias on :math:`p_t` that starts here, as the released code does
            (with -1); ``None`` is the paper's, which has none.
        forget_bias: the same for :math:`f_t` (with 1 in the released code).
        t_max: chrono initialisation for dependencies of up to this many steps: learn a bias on
            :math:`f_t` that starts at :math:`\log U[1, T_{max} - 1]`.
        input_init: fills ``weight_gates`` and ``weight_candidate``.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``; the state is ``(h, c)``, each ``(batch, hidden_size)``; the
        output is the new h.

    Example:
        >>> cell = IRCSRUCell(8, 8, forget_bias=1.0, highway_bias=-1.0)
        >>> y, (h, c) = cell(torch.zeros(2, 8), cell.initial_state(2))
        >>> c.shape
        torch.Size([2, 8])

    Departs from the paper: the equations need as many inputs as units. Where the sizes differ,
    :math:`W_{in} x_t` (``weight_in``) takes the place of :math:`x_t` throughout; where they do
    not, nothing departs.

    References:
        Kuo et al. (2020), An input residual connection for simplifying gated recurrent neural
        networks, equations 31 to 35.
    """

    gates = 2
    cell_state = True
    connects = DiagonalConnection
    square = True
    recurrent_weights = ()

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        bias: bool = True,
        highway_bias: float | None = None,
        forget_bias: float | None = None,
        t_max: int | None = None,
        input_init: Initialiser = "uniform",
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
            generator=generator,
            device=device,
            dtype=dtype,
        )
        check_bias(type(self), bias, highway_bias=highway_bias)
        if highway_bias is not None:
            initial = torch.full((hidden_size,), float(highway_bias), device=device, dtype=dtype)
            self.bias_highway = nn.Parameter(initial)

    def step(
        self, prepared: ConnectedInput, state: LSTMState, tap: Taps = PLAIN
    ) -> tuple[Tensor, LSTMState]:
        f, p = self.read(prepared, state.h, tap)
        c = f * state.c + (1 - f) * tap.candidate(prepared.a)
        h = p * tap.memory(c) + (1 - p) * prepared.x
        return h, LSTMState(h, c)


class IRCTLSTMCell(ResidualCell):
    r"""T-LSTM with an input residual connection: the gates read a corrected input.

    .. math::
        v_t &= x_t + \alpha \odot (\omega_V \odot h_{t-1}) \\
        f_t, o_t &= \sigma(W_{\{F,O\}} v_t) \\
        a_t &= W_A x_t \\
        c_t &= f_t \odot c_{t-1} + (1 - f_t) \odot a_t \\
        h_t &= o_t \odot c_t

    :math:`\alpha` and :math:`\omega_V` are the sigmoid of ``connection.alpha_raw`` and the tanh of
    ``connection.omega_raw``. ``weight_gates`` stacks F above O; ``weight_candidate`` is
    :math:`W_A`.

    Args:
        input_size: features in :math:`x_t`.
        hidden_size: units in :math:`h_t` and :math:`c_t`.
        bias: ``False`` refuses every bias below.
        forget_bias: learn a bias on :math:`f_t` that starts here, as the released code does
            (with 1); ``None`` is the paper's, which has none.
        t_max: chrono initialisation for dependencies of up to this many steps: learn a bias on
            :math:`f_t` that starts at :math:`\log U[1, T_{max} - 1]`.
        input_init: fills ``weight_gates`` and ``weight_candidate``.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``; the state is ``(h, c)``, each ``(batch, hidden_size)``; the
        output is the new h.

    Example:
        >>> cell = IRCTLSTMCell(8, 8)
        >>> y, (h, c) = cell(torch.zeros(2, 8), cell.initial_state(2))
        >>> c.shape
        torch.Size([2, 8])

    Departs from the paper: the equations need as many inputs as units. Where the sizes differ,
    :math:`W_{in} x_t` (``weight_in``) takes the place of :math:`x_t` throughout. The released
    code feeds back :math:`x_{t-1}`; this is the equation, which feeds back :math:`h_{t-1}`.

    References:
        Kuo et al. (2020), An input residual connection for simplifying gated recurrent neural
        networks, equations 40 to 44.
    """

    gates = 2
    cell_state = True
    connects = DiagonalConnection
    square = True
    recurrent_weights = ()

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        bias: bool = True,
        forget_bias: float | None = None,
        t_max: int | None = None,
        input_init: Initialiser = "uniform",
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
            generator=generator,
            device=device,
            dtype=dtype,
        )

    def step(
        self, prepared: ConnectedInput, state: LSTMState, tap: Taps = PLAIN
    ) -> tuple[Tensor, LSTMState]:
        f, o = self.read(prepared, state.h, tap)
        c = f * state.c + (1 - f) * tap.candidate(prepared.a)
        h = o * tap.memory(c)
        return h, LSTMState(h, c)
