r"""Simple recurrent unit (Lei et al.), in the form of Table I of the IRC paper.

Left open by the paper:
    * (30) adds x_t to c_t, so it needs N = M. For N != M, the original uses one more matrix on the
      input of the highway; give it as ``W_X`` (M, N). With N = M it may be left out.
    * Table I has no rescaling of the highway input. The original multiplies it by
      sqrt(1 + 2 exp(b)), b the initial highway bias, to keep the variance: option ``scale``. With a
      ``W_X`` it multiplies the initial W_X instead, and the step has no factor.
    * Both gates read c_{t-1}, the state before this step's update.
    * There is no activation on c_t in (30).
    * c_0 = 0. The output h is not fed back, so the state is c alone.
    * The released code adds a forget bias (initially 1) and a highway bias (initially -1) to b_F
      and b_P. They are sums of two biases, so b_F and b_P here stand for the totals.

References:
    Kuo et al. (2020), An Input Residual Connection for Simplifying Gated RNNs, (27)-(30).
    Lei et al. (2018), Simple Recurrent Units for Highly Parallelizable Recurrence.
"""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def run(
    weights: dict[str, Array],
    x: Array,
    *,
    scale: float = 1.0,
    state: dict[str, Array] | None = None,
) -> tuple[Array, dict[str, Array], dict[str, Array]]:
    r"""Run one sequence, step by step.

    .. math::
        f_t, p_t &= \sigma(W_{\{F,P\}} x_t + \omega_{\{F,P\}} \odot c_{t-1} + b_{\{F,P\}}) & (27) \\
        a_t &= W_A x_t & (28) \\
        c_t &= f_t \odot c_{t-1} + (1 - f_t) \odot a_t & (29) \\
        h_t &= p_t \odot c_t + (1 - p_t) \odot x_t & (30)

    Args:
        weights: ``W_F, W_P, W_A`` (M, N); ``omega_F, omega_P, b_F, b_P`` (M,); optionally ``W_X``
            (M, N), which turns x_t in (30) into W_X x_t.
        x: (T, N).
        scale: factor on the highway input where that is x_t itself.
        state: ``c`` (M,) to start from.

    Returns:
        h (T, M); the final ``c``; and per step ``f``, ``p``, ``a``, ``c``.
    """
    T, M = x.shape[0], weights["W_F"].shape[0]
    c = (state or {}).get("c", np.zeros(M))
    hs, fs, ps, as_, cs = [], [], [], [], []
    for t in range(T):
        f = _sigma(weights["W_F"] @ x[t] + weights["omega_F"] * c + weights["b_F"])
        p = _sigma(weights["W_P"] @ x[t] + weights["omega_P"] * c + weights["b_P"])
        a = weights["W_A"] @ x[t]
        c = f * c + (1 - f) * a
        carried = weights["W_X"] @ x[t] if "W_X" in weights else scale * x[t]
        h = p * c + (1 - p) * carried
        hs.append(h)
        fs.append(f)
        ps.append(p)
        as_.append(a)
        cs.append(c)
    per_step = {"f": np.array(fs), "p": np.array(ps), "a": np.array(as_), "c": np.array(cs)}
    return np.array(hs), {"c": c}, per_step


def _sigma(z: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * z)))
