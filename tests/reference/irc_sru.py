r"""IRC-SRU: a simple recurrent unit whose gates read an input corrected by the last output.

Left open by the paper:
    * (31) adds omega_V * h_{t-1} to x_t, and (35) mixes c_t with x_t: both need N = M, and there is
      no matrix to bridge a difference. N != M is an error.
    * alpha = sigma(u_alpha), u_alpha initially 2. omega_V is "parameterised by the hyperbolic
      tangent": omega_V = tanh(u_omega), u_omega drawn from U(+-1/sqrt(M)).
    * (31) feeds back the output h_{t-1}, where the SRU itself feeds back c_{t-1}; so h joins the
      state.
    * Table I has no biases. The released code keeps a forget bias (initially 1) and a highway bias
      (initially -1); ``b_F`` and ``b_P`` are added when given.
    * h_0 = c_0 = 0.

References:
    Kuo et al. (2020), An Input Residual Connection for Simplifying Gated RNNs, (31)-(35).
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
        v_t &= x_t + \alpha \odot (\omega_V \odot h_{t-1}) & (31) \\
        f_t, p_t &= \sigma(W_{\{F,P\}} v_t) & (32) \\
        a_t &= W_A x_t & (33) \\
        c_t &= f_t \odot c_{t-1} + (1 - f_t) \odot a_t & (34) \\
        h_t &= p_t \odot c_t + (1 - p_t) \odot x_t & (35)

    Args:
        weights: ``u_alpha, u_omega`` (N,); ``W_F, W_P, W_A`` (N, N); optionally ``b_F, b_P`` (N,).
        x: (T, N).
        state: ``h``, ``c`` (N,) to start from.

    Returns:
        h (T, N); the final ``h`` and ``c``; and per step ``v``, ``f``, ``p``, ``a``, ``c``.
    """
    M, N = weights["W_F"].shape
    if M != N:
        raise ValueError(f"IRC-SRU needs as many units as inputs, but W_F has shape {(M, N)}.")
    start = {"h": np.zeros(M), "c": np.zeros(M)} | (state or {})
    h, c = start["h"], start["c"]
    alpha, omega = _sigma(weights["u_alpha"]), np.tanh(weights["u_omega"])
    b_F, b_P = weights.get("b_F", np.zeros(M)), weights.get("b_P", np.zeros(M))
    hs: list[Array] = []
    steps: dict[str, list[Array]] = {k: [] for k in "vfpac"}
    for t in range(x.shape[0]):
        v = x[t] + alpha * (omega * h)
        f = _sigma(weights["W_F"] @ v + b_F)
        p = _sigma(weights["W_P"] @ v + b_P)
        a = weights["W_A"] @ x[t]
        c = f * c + (1 - f) * a
        h = p * c + (1 - p) * x[t]
        hs.append(h)
        for k, value in zip("vfpac", (v, f, p, a, c), strict=True):
            steps[k].append(value)
    return np.array(hs), {"h": h, "c": c}, {k: np.array(s) for k, s in steps.items()}


def _sigma(z: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * z)))
