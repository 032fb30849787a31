"""Statistical recurrent unit: Chandar's thesis (2.43)-(2.47), after Oliva et al. (2017)."""

from collections.abc import Sequence

import numpy as np

from reference.maths import relu
from reference.result import Array, Run, Shapes, State, Weights, stack

THESIS_ALPHAS = (0.0, 0.5, 0.9, 0.99, 0.999)


def shapes(
    input_size: int,
    hidden_size: int,
    *,
    statistics: int,
    recurrent: int,
    alphas: Sequence[float] = THESIS_ALPHAS,
) -> Shapes:
    """Names and shapes of the weights."""
    averages = len(alphas) * statistics
    return {
        "W_r": (recurrent, averages),
        "b_r": (recurrent,),
        "W_m": (statistics, recurrent),
        "W_x": (statistics, input_size),
        "b_m": (statistics,),
        "W_h": (hidden_size, averages),
        "b_h": (hidden_size,),
    }


def run(
    weights: Weights,
    x: Array,
    *,
    alphas: Sequence[float] = THESIS_ALPHAS,
    state: State | None = None,
) -> Run:
    r"""Take one sequence through the cell; f is the ReLU everywhere.

    .. math::
        r_t &= f(W_r m_{t-1} + b_r) \tag{2.44} \\
        \hat m_t &= f(W_m r_t + W_x x_t + b_m) \tag{2.45} \\
        m_t^{(\alpha)} &= \alpha m_{t-1}^{(\alpha)} + (1 - \alpha) \hat m_t \tag{2.43} \\
        m_t &= [m_t^{(\alpha_1)}; \ldots; m_t^{(\alpha_m)}] \tag{2.46} \\
        h_t &= f(W_h m_t + b_h) \tag{2.47}

    The order of ``alphas`` is the order of the blocks of m, so the first S columns of ``W_r`` and
    ``W_h`` belong to ``alphas[0]``.

    Left open by the paper: :math:`m_0 = 0`. Only m is carried; h is an output.

    Args:
        weights: with S statistics, R recurrent units and n averages: ``W_r (R, nS)``, ``b_r (R,)``,
            ``W_m (S, R)``, ``W_x (S, I)``, ``b_m (S,)``, ``W_h (H, nS)``, ``b_h (H,)``.
        x: ``(T, I)``.
        alphas: the scales of the moving averages, each in [0, 1).
        state: ``m (n, S)``.

    Returns:
        outputs :math:`h_t`; state ``m``; steps ``h``, ``m (T, n, S)``, ``m_hat``, ``r``.
    """
    statistics = len(weights["b_m"])
    m = np.zeros((len(alphas), statistics)) if state is None else state["m"]
    records = []
    for x_t in x:
        r = relu(weights["W_r"] @ np.concatenate(list(m)) + weights["b_r"])
        m_hat = relu(weights["W_m"] @ r + weights["W_x"] @ x_t + weights["b_m"])
        m = np.stack([a * m[n] + (1 - a) * m_hat for n, a in enumerate(alphas)])
        h = relu(weights["W_h"] @ np.concatenate(list(m)) + weights["b_h"])
        records.append({"h": h, "m": m, "m_hat": m_hat, "r": r})
    steps = stack(records)
    return Run(steps["h"], {"m": m}, steps)
