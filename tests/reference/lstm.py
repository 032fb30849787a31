"""Long short-term memory: Chandar's thesis (2.17)-(2.22), with peepholes (2.23)-(2.27)."""

import numpy as np

from reference.maths import sigmoid
from reference.result import Array, Run, Shapes, State, Weights, stack


def shapes(input_size: int, hidden_size: int, *, peepholes: bool = False) -> Shapes:
    """Names and shapes of the weights."""
    named: Shapes = {}
    for gate in "ifoc":
        named[f"W_x{gate}"] = (hidden_size, input_size)
        named[f"W_h{gate}"] = (hidden_size, hidden_size)
        named[f"b_{gate}"] = (hidden_size,)
    if peepholes:
        named |= {f"w_c{gate}": (hidden_size,) for gate in "ifo"}
    return named


def run(weights: Weights, x: Array, *, peepholes: bool = False, state: State | None = None) -> Run:
    r"""Take one sequence through the cell.

    .. math::
        i_t &= \sigma(W_{xi} x_t + W_{hi} h_{t-1} + w_{ci} \odot c_{t-1} + b_i) \tag{2.23} \\
        f_t &= \sigma(W_{xf} x_t + W_{hf} h_{t-1} + w_{cf} \odot c_{t-1} + b_f) \tag{2.24} \\
        \tilde c_t &= \tanh(W_{xc} x_t + W_{hc} h_{t-1} + b_c) \tag{2.20} \\
        c_t &= f_t \odot c_{t-1} + i_t \odot \tilde c_t \tag{2.25} \\
        o_t &= \sigma(W_{xo} x_t + W_{ho} h_{t-1} + w_{co} \odot c_t + b_o) \tag{2.26} \\
        h_t &= o_t \odot \tanh(c_t) \tag{2.27}

    Without peepholes the terms in ``w_c*`` are absent: (2.17)-(2.22). The output gate looks at the
    new cell state, the other two at the old one. The peephole matrices are diagonal, so each is
    kept as a vector.

    Left open by the paper: :math:`h_0 = c_0 = 0`.

    Args:
        weights: for each gate g of i, f, o, c: ``W_xg (H, I)``, ``W_hg (H, H)``, ``b_g (H,)``;
            with ``peepholes`` also ``w_ci``, ``w_cf``, ``w_co``, each ``(H,)``.
        x: ``(T, I)``.
        peepholes: use (2.23)-(2.27).
        state: ``h (H,)``, ``c (H,)``.

    Returns:
        outputs :math:`h_t`; state ``h``, ``c``; steps ``h``, ``c``, ``i``, ``f``, ``o``.
    """
    hidden_size = len(weights["b_i"])
    h = np.zeros(hidden_size) if state is None else state["h"]
    c = np.zeros(hidden_size) if state is None else state["c"]
    zero = np.zeros(hidden_size)
    w_ci, w_cf, w_co = (
        weights[f"w_c{g}"] if peepholes else zero for g in ("i", "f", "o")
    )  # a zero peephole is no peephole

    records = []
    for x_t in x:
        i = sigmoid(weights["W_xi"] @ x_t + weights["W_hi"] @ h + w_ci * c + weights["b_i"])
        f = sigmoid(weights["W_xf"] @ x_t + weights["W_hf"] @ h + w_cf * c + weights["b_f"])
        c_tilde = np.tanh(weights["W_xc"] @ x_t + weights["W_hc"] @ h + weights["b_c"])
        c = f * c + i * c_tilde
        o = sigmoid(weights["W_xo"] @ x_t + weights["W_ho"] @ h + w_co * c + weights["b_o"])
        h = o * np.tanh(c)
        records.append({"h": h, "c": c, "i": i, "f": f, "o": o})
    steps = stack(records)
    return Run(steps["h"], {"h": h, "c": c}, steps)
