"""The input residual connection: gated cells with one feedback for all of their gates."""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.connected import (
    FASTGRNN,
    GRU,
    LSTM,
    SRU,
    TLSTM,
    DiagonalConnection,
    ResidualCell,
)
from attractor.cells.init import Initialiser, check_bias, normal_


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

    design = GRU


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

    design = LSTM


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

    design = FASTGRNN

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

    def write(self, x: Tensor) -> Tensor:
        # beta stands before a factor of its own units, so it can be taken into the candidate
        return torch.sigmoid(self.beta_raw) * F.linear(x, self.weight_candidate)


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

    design = SRU
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

    design = TLSTM
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
