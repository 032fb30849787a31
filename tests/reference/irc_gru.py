r"""IRC-GRU: a GRU whose gates read an input corrected by the memory.

Left open by the paper:
    * alpha is "parameterised by the sigmoid function": alpha = sigma(u_alpha), one per input, with
      u_alpha initially 2 (alpha about 0.88) in the released code. The thesis calls it phi.
    * Table I has no biases. The released code keeps one on the gate of h_{t-1}. There the gate is
      1 - i_t and its bias starts at 1; in Table I's terms that is a bias ``b_I`` on i_t starting
      at -1. It is added when given.
    * h_0 = 0.

References:
    Kuo et al. (2020), An Input Residual Connection for Simplifying Gated RNNs, (14)-(17).
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
        v_t &= x_t + \alpha \odot (U_V h_{t-1}) & (15) \\
        i_t, r_t &= \sigma(W_{\{I,R\}} v_t) & (16) \\
        a_t &= W_A x_t & (14) \\
        h_t &= (1 - i_t) \odot h_{t-1} + i_t \odot (r_t \odot a_t) & (17)

    Args:
        weights: ``U_V`` (N, M); ``u_alpha`` (N,); ``W_I, W_R, W_A`` (M, N); optionally ``b_I``
            (M,).
        x: (T, N).
        state: ``h`` (M,) to start from.

    Returns:
        h (T, M); the final ``h``; and per step ``v``, ``i``, ``r``, ``a``.
    """
    M = weights["W_I"].shape[0]
    h = (state or {}).get("h", np.zeros(M))
    alpha = _sigma(weights["u_alpha"])
    b_I = weights.get("b_I", np.zeros(M))
    hs, vs, is_, rs, as_ = [], [], [], [], []
    for t in range(x.shape[0]):
        v = x[t] + alpha * (weights["U_V"] @ h)
        i = _sigma(weights["W_I"] @ v + b_I)
        r = _sigma(weights["W_R"] @ v)
        a = weights["W_A"] @ x[t]
        h = (1 - i) * h + i * (r * a)
        hs.append(h)
        vs.append(v)
        is_.append(i)
        rs.append(r)
        as_.append(a)
    per_step = {"v": np.array(vs), "i": np.array(is_), "r": np.array(rs), "a": np.array(as_)}
    return np.array(hs), {"h": h}, per_step


def _sigma(z: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * z)))
