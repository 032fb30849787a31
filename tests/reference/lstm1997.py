"""The LSTM of 1997, without a forget gate: Kuo's thesis, section 3.1.3.1."""

import numpy as np

from reference.maths import sigmoid
from reference.result import Array, Run, Shapes, State, Weights, stack


def shapes(input_size: int, hidden_size: int) -> Shapes:
    """Names and shapes of the weights."""
    named: Shapes = {}
    for gate in "IAO":
        named[f"W_{gate}"] = (hidden_size, input_size)
        named[f"U_{gate}"] = (hidden_size, hidden_size)
        named[f"b_{gate}"] = (hidden_size,)
    return named


def run(weights: Weights, x: Array, *, state: State | None = None) -> Run:
    r"""Take one sequence through the cell.

    .. math::
        i_t, o_t &= \sigma(W_{I,O} x_t + U_{I,O} h_{t-1} + b_{I,O}) \\
        a_t &= \tanh(W_A x_t + U_A h_{t-1} + b_A) \\
        c_t &= c_{t-1} + i_t \odot a_t \\
        h_t &= o_t \odot \tanh(c_t)

    Left open by the thesis: :math:`h_0 = c_0 = 0`.

    Returns:
        outputs :math:`h_t`; state ``h``, ``c``; steps ``h``, ``c``, ``i``, ``o``, ``a``.
    """
    size = len(weights["b_I"])
    h = np.zeros(size) if state is None else state["h"]
    c = np.zeros(size) if state is None else state["c"]
    records = []
    for x_t in x:
        sums = {
            g: weights[f"W_{g}"] @ x_t + weights[f"U_{g}"] @ h + weights[f"b_{g}"] for g in "IAO"
        }
        i, o, a = sigmoid(sums["I"]), sigmoid(sums["O"]), np.tanh(sums["A"])
        c = c + i * a
        h = o * np.tanh(c)
        records.append({"h": h, "c": c, "i": i, "o": o, "a": a})
    steps = stack(records)
    return Run(steps["h"], {"h": h, "c": c}, steps)
