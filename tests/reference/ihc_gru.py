r"""IHC-GRU: an IRC-GRU with a highway in place of the residual connection.

Left open by the paper:
    * The paper tries the highway on the LSTM only. This is the same replacement, (52)-(53) for
      (15), made in the IRC-GRU.
    * Gamma is (N, M) and W_G is (N, N), as in the IHC-LSTM.
    * ``b_I`` is added to the pre-activation of i_t when given; a forget bias of 1 is b_I = -1.
    * h_0 = 0.

References:
    Kuo et al. (2020), An Input Residual Connection for Simplifying Gated RNNs, (52)-(53), (16),
    (14), (17).
"""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def run(
    weights: dict[str, Array],
    x: Array,
    *,
    state: dict[str, Array] | None = None,
) -> tuple[Array, dict[str, Array], dict[str, Array]]:
    r"""Run one sequence, step by step.

    .. math::
        g_t &= \sigma(W_G x_t + \Gamma h_{t-1} + b_G) & (53) \\
        v_t &= (1 - g_t) \odot x_t + g_t \odot (U_V h_{t-1}) & (52) \\
        i_t, r_t &= \sigma(W_{\{I,R\}} v_t) & (16) \\
        a_t &= W_A x_t & (14) \\
        h_t &= (1 - i_t) \odot h_{t-1} + i_t \odot (r_t \odot a_t) & (17)

    Args:
        weights: ``W_G`` (N, N); ``Gamma, U_V`` (N, M); ``b_G`` (N,); ``W_I, W_R, W_A`` (M, N);
            optionally ``b_I`` (M,).
        x: (T, N).
        state: ``h`` (M,) to start from.

    Returns:
        h (T, M); the final ``h``; and per step ``g``, ``v``, ``i``, ``r``, ``a``.
    """
    M = weights["W_I"].shape[0]
    h = (state or {}).get("h", np.zeros(M))
    b_I = weights.get("b_I", np.zeros(M))
    hs: list[Array] = []
    steps: dict[str, list[Array]] = {k: [] for k in "gvira"}
    for t in range(x.shape[0]):
        g = _sigma(weights["W_G"] @ x[t] + weights["Gamma"] @ h + weights["b_G"])
        v = (1 - g) * x[t] + g * (weights["U_V"] @ h)
        i = _sigma(weights["W_I"] @ v + b_I)
        r = _sigma(weights["W_R"] @ v)
        a = weights["W_A"] @ x[t]
        h = (1 - i) * h + i * (r * a)
        hs.append(h)
        for k, value in zip("gvira", (g, v, i, r, a), strict=True):
            steps[k].append(value)
    return np.array(hs), {"h": h}, {k: np.array(s) for k, s in steps.items()}


def _sigma(z: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * z)))
