r"""IRC-T-LSTM: a strongly-typed LSTM whose gates read an input corrected by the last output.

Left open by the paper:
    * (40) adds omega_V * h_{t-1} to x_t, so it needs N = M. N != M is an error.
    * The released code feeds back x_{t-1}, as the plain T-LSTM does; (40) says h_{t-1}. The
      equation is followed, so x_{t-1} leaves the state and h joins it.
    * The output gate is a sigmoid (41), as in Table I's T-LSTM.
    * alpha = sigma(u_alpha), u_alpha initially 2; omega_V = tanh(u_omega), u_omega drawn from
      U(+-1/sqrt(M)).
    * Table I has no biases. The released code keeps a forget bias (initially 1); ``b_F`` is added
      when given.
    * h_0 = c_0 = 0.

References:
    Kuo et al. (2020), An Input Residual Connection for Simplifying Gated RNNs, (40)-(44).
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
        v_t &= x_t + \alpha \odot (\omega_V \odot h_{t-1}) & (40) \\
        f_t, o_t &= \sigma(W_{\{F,O\}} v_t) & (41) \\
        a_t &= W_A x_t & (42) \\
        c_t &= f_t \odot c_{t-1} + (1 - f_t) \odot a_t & (43) \\
        h_t &= o_t \odot c_t & (44)

    Args:
        weights: ``u_alpha, u_omega`` (N,); ``W_F, W_O, W_A`` (N, N); optionally ``b_F`` (N,).
        x: (T, N).
        state: ``h``, ``c`` (N,) to start from.

    Returns:
        h (T, N); the final ``h`` and ``c``; and per step ``v``, ``f``, ``o``, ``a``, ``c``.
    """
    M, N = weights["W_F"].shape
    if M != N:
        raise ValueError(f"IRC-T-LSTM needs as many units as inputs, but W_F has shape {(M, N)}.")
    start = {"h": np.zeros(M), "c": np.zeros(M)} | (state or {})
    h, c = start["h"], start["c"]
    alpha, omega = _sigma(weights["u_alpha"]), np.tanh(weights["u_omega"])
    b_F = weights.get("b_F", np.zeros(M))
    hs: list[Array] = []
    steps: dict[str, list[Array]] = {k: [] for k in "vfoac"}
    for t in range(x.shape[0]):
        v = x[t] + alpha * (omega * h)
        f = _sigma(weights["W_F"] @ v + b_F)
        o = _sigma(weights["W_O"] @ v)
        a = weights["W_A"] @ x[t]
        c = f * c + (1 - f) * a
        h = o * c
        hs.append(h)
        for k, value in zip("vfoac", (v, f, o, a, c), strict=True):
            steps[k].append(value)
    return np.array(hs), {"h": h, "c": c}, {k: np.array(s) for k, s in steps.items()}


def _sigma(z: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * z)))
