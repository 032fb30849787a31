"""The input highway connection: gated cells simplified, with a gate on what they read."""

from attractor.cells.connected import GRU, LSTM, ConnectedCell, HighwayConnection


class IHCLSTMCell(ConnectedCell):
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
        forget_bias: learn a bias on :math:`f_t` that starts here, as the released code does
            (with 1); ``None`` is the paper's, which has none.
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
    :math:`b_G`; with them the count is the published one.

    References:
        Kuo et al. (2020), An input residual connection for simplifying gated recurrent neural
        networks, equations 52, 53 and 23 to 26.
    """

    design = LSTM
    connects = HighwayConnection


class IHCGRUCell(ConnectedCell):
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
        forget_bias: learn a bias on :math:`i_t` that starts at minus this, which is a bias on
            what keeps the old state; ``None`` for no bias.
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

    design = GRU
    connects = HighwayConnection
