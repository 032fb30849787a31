"""JANET, an LSTM with a forget gate alone: Chandar's thesis (2.34)-(2.39)."""

import numpy as np

from reference.maths import sigmoid
from reference.result import Array, Run, Shapes, State, Weights, stack


def shapes(input_size: int, hidden_size: int) -> Shapes:
    """Names and shapes of the weights."""
    named: Shapes = {}
    for gate in "fh":
        named[f"W_x{gate}"] = (hidden_size, input_size)
        named[f"W_h{gate}"] = (hidden_size, hidden_size)
        named[f"b_{gate}"] = (hidden_size,)
    return named


def run(weights: Weights, x: Array, *, beta: float = 1.0, state: State | None = None) -> Run:
    r"""Take one sequence through the cell.

    .. math::
        s_t &= W_{xf} x_t + W_{hf} h_{t-1} + b_f \tag{2.37} \\
        \tilde h_t &= \tanh(W_{xh} x_t + W_{hh} h_{t-1} + b_h) \tag{2.38} \\
        h_t &= \sigma(s_t) \odot h_{t-1}
               + (1 - \sigma(s_t - \beta)) \odot \tilde h_t \tag{2.39}

    ``beta=0`` is (2.34)-(2.36).

    Left open by the paper:
        - The pre-specified :math:`\beta` is 1, as in van der Westhuizen and Lasenby (2018).
        - :math:`h_0 = 0`.

    Args:
        weights: for each g of f, h: ``W_xg (H, I)``, ``W_hg (H, H)``, ``b_g (H,)``.
        x: ``(T, I)``.
        beta: subtracted from the input control, so that more accumulates than is forgotten.
        state: ``h (H,)``.

    Returns:
        outputs :math:`h_t`; state ``h``; steps ``h``, ``f`` (sigmoid of s), ``h_tilde``.
    """
    h = np.zeros(len(weights["b_f"])) if state is None else state["h"]
    records = []
    for x_t in x:
        s = weights["W_xf"] @ x_t + weights["W_hf"] @ h + weights["b_f"]
        h_tilde = np.tanh(weights["W_xh"] @ x_t + weights["W_hh"] @ h + weights["b_h"])
        h = sigmoid(s) * h + (1 - sigmoid(s - beta)) * h_tilde
        records.append({"h": h, "f": sigmoid(s), "h_tilde": h_tilde})
    steps = stack(records)
    return Run(steps["h"], {"h": h}, steps)
