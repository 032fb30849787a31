r"""Strongly-typed LSTM, in the form of Table I of the IRC paper.

Left open by the paper:
    * Table I puts the sigmoid on the output gate o; Balduzzi and Ghifary write tau, a tanh, there.
      Table I is the default; ``output_gate="tanh"`` gives the original.
    * x_0, the input before the first one, is zero, and so is c_0.
    * The state is (c, x_{t-1}); its second part has the size of the input. h is not fed back.

References:
    Kuo et al. (2020), An Input Residual Connection for Simplifying Gated RNNs, (36)-(39).
    Balduzzi and Ghifary (2016), Strongly-Typed Recurrent Neural Networks, arXiv:1602.02218.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def run(
    weights: dict[str, Array],
    x: Array,
    *,
    output_gate: Literal["sigmoid", "tanh"] = "sigmoid",
    state: dict[str, Array] | None = None,
) -> tuple[Array, dict[str, Array], dict[str, Array]]:
    r"""Run one sequence, step by step.

    .. math::
        f_t, o_t &= \sigma(W_{\{F,O\}} x_t + U_{\{F,O\}} x_{t-1} + b_{\{F,O\}}) & (36) \\
        a_t &= W_A x_t + U_A x_{t-1} + b_A & (37) \\
        c_t &= f_t \odot c_{t-1} + (1 - f_t) \odot a_t & (38) \\
        h_t &= o_t \odot c_t & (39)

    Args:
        weights: ``W_F, W_O, W_A, U_F, U_O, U_A`` (M, N); ``b_F, b_O, b_A`` (M,).
        x: (T, N).
        output_gate: the function on o.
        state: ``c`` (M,) and ``x`` (N,), the input before the first, to start from.

    Returns:
        h (T, M); the final ``c`` and ``x``; and per step ``f``, ``o``, ``a``, ``c``.
    """
    T, N = x.shape
    start = {"c": np.zeros(weights["W_F"].shape[0]), "x": np.zeros(N)} | (state or {})
    c, previous = start["c"], start["x"]
    hs, fs, os, as_, cs = [], [], [], [], []
    for t in range(T):
        f = _sigma(weights["W_F"] @ x[t] + weights["U_F"] @ previous + weights["b_F"])
        o_pre = weights["W_O"] @ x[t] + weights["U_O"] @ previous + weights["b_O"]
        o = np.tanh(o_pre) if output_gate == "tanh" else _sigma(o_pre)
        a = weights["W_A"] @ x[t] + weights["U_A"] @ previous + weights["b_A"]
        c = f * c + (1 - f) * a
        h = o * c
        previous = x[t]
        hs.append(h)
        fs.append(f)
        os.append(o)
        as_.append(a)
        cs.append(c)
    per_step = {"f": np.array(fs), "o": np.array(os), "a": np.array(as_), "c": np.array(cs)}
    return np.array(hs), {"c": c, "x": previous}, per_step


def _sigma(z: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * z)))
