r"""DecayNet's decay on a GRU.

Kuo et al. (2018), section 7, suggest it without equations. This is Cho et al.'s GRU, Chandar's
thesis (2.30)-(2.33), whose share of the old state, 1 - z, is DecayNet's gate: the sine of an angle
that falls, Kuo's thesis, section 4.1.4.
"""

import math

import numpy as np

from reference.maths import sigmoid
from reference.result import Array, Run, State, Weights, stack


def run(weights: Weights, x: Array, *, D: int | None = None, state: State | None = None) -> Run:
    r"""Take one sequence through the cell.

    .. math::
        r_t &= \sigma(W_R x_t + U_R h_{t-1} + b_R) \\
        p_t &= p_{t-1} - \tfrac{\pi}{2D} \tfrac16 (W_F x_t + U_F h_{t-1} + 3), \quad p_0 = \pi/2 \\
        f_t &= 1 \text{ if } p_t > \pi/2, \; 0 \text{ if } p_t < 0, \; \sin p_t \text{ otherwise} \\
        \tilde h_t &= \tanh(W_A x_t + U_A (r_t \odot h_{t-1}) + b_A) \\
        h_t &= f_t \odot h_{t-1} + (1 - f_t) \odot \tilde h_t

    Args:
        weights: ``W_F, W_R, W_A``, ``U_F, U_R, U_A``, ``b_R, b_A``.
        x: ``(T, I)``.
        D: steps over which the gate may fall; ``None`` means T.
        state: ``h`` and ``p``.

    Returns:
        outputs :math:`h_t`; state ``h``, ``p``; steps ``h``, ``p``, ``f``.
    """
    size = len(weights["b_R"])
    h = np.zeros(size) if state is None else state["h"]
    p = np.full(size, math.pi / 2) if state is None else state["p"]
    length = len(x) if D is None else D
    records = []
    for x_t in x:
        r = sigmoid(weights["W_R"] @ x_t + weights["U_R"] @ h + weights["b_R"])
        p = p - math.pi / (2 * length) / 6 * (weights["W_F"] @ x_t + weights["U_F"] @ h + 3)
        f = np.array([1.0 if q > math.pi / 2 else 0.0 if q < 0 else math.sin(q) for q in p])
        tilde = np.tanh(weights["W_A"] @ x_t + weights["U_A"] @ (r * h) + weights["b_A"])
        h = f * h + (1 - f) * tilde
        records.append({"h": h, "p": p, "f": f})
    steps = stack(records)
    return Run(steps["h"], {"h": h, "p": p}, steps)
