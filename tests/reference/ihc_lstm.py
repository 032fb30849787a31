r"""IHC-LSTM: an IRC-LSTM with a highway in place of the residual connection.

Left open by the paper:
    * The paper prints Gamma in R^{M x N}; (53) multiplies it with h in R^M into R^N, so with rows
      as outputs it is (N, M). W_G is not given a size; it maps x to g, so it is (N, N).
    * The released language model leaves out W_G and b_G. The equations are followed: they give the
      2,820 parameters reported for 20 inputs and 20 units. Zero W_G and b_G give the other.
    * Only the gates read v. The candidate (24) reads x, as in the IRC-LSTM.
    * Table I has no biases beside b_G. The released code keeps a forget bias (initially 1);
      ``b_F`` is added when given.
    * h_0 = c_0 = 0.

The thesis writes Lambda for g (4.50)-(4.51).

References:
    Kuo et al. (2020), An Input Residual Connection for Simplifying Gated RNNs, (52)-(53),
    (23)-(26).
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
        f_t, i_t, o_t &= \sigma(W_{\{F,I,O\}} v_t) & (23) \\
        a_t &= W_A x_t & (24) \\
        c_t &= f_t \odot c_{t-1} + i_t \odot a_t & (25) \\
        h_t &= o_t \odot \tanh(c_t) & (26)

    Args:
        weights: ``W_G`` (N, N); ``Gamma, U_V`` (N, M); ``b_G`` (N,); ``W_F, W_I, W_O, W_A``
            (M, N); optionally ``b_F`` (M,).
        x: (T, N).
        state: ``h``, ``c`` (M,) to start from.

    Returns:
        h (T, M); the final ``h`` and ``c``; and per step ``g``, ``v``, ``f``, ``i``, ``o``, ``a``,
        ``c``.
    """
    M = weights["W_F"].shape[0]
    start = {"h": np.zeros(M), "c": np.zeros(M)} | (state or {})
    h, c = start["h"], start["c"]
    b_F = weights.get("b_F", np.zeros(M))
    hs: list[Array] = []
    steps: dict[str, list[Array]] = {k: [] for k in "gvfioac"}
    for t in range(x.shape[0]):
        g = _sigma(weights["W_G"] @ x[t] + weights["Gamma"] @ h + weights["b_G"])
        v = (1 - g) * x[t] + g * (weights["U_V"] @ h)
        f = _sigma(weights["W_F"] @ v + b_F)
        i = _sigma(weights["W_I"] @ v)
        o = _sigma(weights["W_O"] @ v)
        a = weights["W_A"] @ x[t]
        c = f * c + i * a
        h = o * np.tanh(c)
        hs.append(h)
        for k, value in zip("gvfioac", (g, v, f, i, o, a, c), strict=True):
            steps[k].append(value)
    return np.array(hs), {"h": h, "c": c}, {k: np.array(s) for k, s in steps.items()}


def _sigma(z: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * z)))
