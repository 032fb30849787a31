r"""IRC-FastGRNN: a FastGRNN whose gate reads an input corrected by the memory.

Left open by the paper:
    * beta is a "trainable constant" in the text, a scalar; the released code has one per unit.
      ``u_beta``, before the sigmoid, may have either shape; one per unit, drawn from N(0, 0.1^2),
      is what was trained.
    * kappa of (47) is gone from (51).
    * alpha = sigma(u_alpha), one per input, u_alpha initially 2.
    * Table I has no biases. The released code keeps a forget bias (initially 1); ``b_F`` is added
      when given.
    * h_0 = 0.

References:
    Kuo et al. (2020), An Input Residual Connection for Simplifying Gated RNNs, (48)-(51).
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
        v_t &= x_t + \alpha \odot (U_V h_{t-1}) & (48) \\
        f_t &= \sigma(W_F v_t) & (49) \\
        a_t &= W_A x_t & (50) \\
        h_t &= f_t \odot h_{t-1} + \beta (1 - f_t) \odot a_t & (51)

    with beta = sigma(u_beta).

    Args:
        weights: ``U_V`` (N, M); ``u_alpha`` (N,); ``W_F, W_A`` (M, N); ``u_beta`` of shape (M,),
            (1,) or (); optionally ``b_F`` (M,).
        x: (T, N).
        state: ``h`` (M,) to start from.

    Returns:
        h (T, M); the final ``h``; and per step ``v``, ``f``, ``a``.
    """
    M = weights["W_F"].shape[0]
    h = (state or {}).get("h", np.zeros(M))
    alpha, beta = _sigma(weights["u_alpha"]), _sigma(weights["u_beta"])
    b_F = weights.get("b_F", np.zeros(M))
    hs, vs, fs, as_ = [], [], [], []
    for t in range(x.shape[0]):
        v = x[t] + alpha * (weights["U_V"] @ h)
        f = _sigma(weights["W_F"] @ v + b_F)
        a = weights["W_A"] @ x[t]
        h = f * h + beta * (1 - f) * a
        hs.append(h)
        vs.append(v)
        fs.append(f)
        as_.append(a)
    return np.array(hs), {"h": h}, {"v": np.array(vs), "f": np.array(fs), "a": np.array(as_)}


def _sigma(z: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * z)))
