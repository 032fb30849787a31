r"""IRC-LSTM: an LSTM whose gates read an input corrected by the memory.

Left open by the paper:
    * alpha = sigma(u_alpha), one per input, u_alpha initially 2. The thesis calls it phi.
    * The memory fed back into v is the hidden state h, not the cell.
    * Table I has no biases. The released code keeps a forget bias (initially 1) in every IRC cell
      that it has; ``b_F`` is added when given. This cell is not among the released ones.
    * h_0 = c_0 = 0.

References:
    Kuo et al. (2020), An Input Residual Connection for Simplifying Gated RNNs, (22)-(26).
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
        v_t &= x_t + \alpha \odot (U_V h_{t-1}) & (22) \\
        f_t, i_t, o_t &= \sigma(W_{\{F,I,O\}} v_t) & (23) \\
        a_t &= W_A x_t & (24) \\
        c_t &= f_t \odot c_{t-1} + i_t \odot a_t & (25) \\
        h_t &= o_t \odot \tanh(c_t) & (26)

    Args:
        weights: ``U_V`` (N, M); ``u_alpha`` (N,); ``W_F, W_I, W_O, W_A`` (M, N); optionally
            ``b_F`` (M,).
        x: (T, N).
        state: ``h``, ``c`` (M,) to start from.

    Returns:
        h (T, M); the final ``h`` and ``c``; and per step ``v``, ``f``, ``i``, ``o``, ``a``, ``c``.
    """
    M = weights["W_F"].shape[0]
    start = {"h": np.zeros(M), "c": np.zeros(M)} | (state or {})
    h, c = start["h"], start["c"]
    alpha = _sigma(weights["u_alpha"])
    b_F = weights.get("b_F", np.zeros(M))
    hs: list[Array] = []
    steps: dict[str, list[Array]] = {k: [] for k in "vfioac"}
    for t in range(x.shape[0]):
        v = x[t] + alpha * (weights["U_V"] @ h)
        f = _sigma(weights["W_F"] @ v + b_F)
        i = _sigma(weights["W_I"] @ v)
        o = _sigma(weights["W_O"] @ v)
        a = weights["W_A"] @ x[t]
        c = f * c + i * a
        h = o * np.tanh(c)
        hs.append(h)
        for k, value in zip("vfioac", (v, f, i, o, a, c), strict=True):
            steps[k].append(value)
    return np.array(hs), {"h": h, "c": c}, {k: np.array(s) for k, s in steps.items()}


def _sigma(z: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * z)))
