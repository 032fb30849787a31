r"""FastGRNN: one gate, reused as an affine weight on the candidate.

Left open by the paper:
    * Table I gives the gate and the candidate separate matrices; Kusupati et al. share one W and
      one U between them, which is what makes the cell small. Separate is the default here;
      ``shared=True`` gives the original, and reads ``W`` and ``U``.
    * beta and kappa are "trainable constants" in [0, 1]: scalars, kept as ``u_beta`` and
      ``u_kappa`` before the sigmoid. Original names: zeta and nu, initially 1 and -4 before the
      sigmoid.
    * The released code uses them in the first layer only and sets (beta, kappa) = (1, 0) above it.
      Infinite u_beta and minus infinite u_kappa give that case.
    * Table I prints ``(beta (1 - f) + kappa)`` next to the elementwise product: the scalar kappa is
      added to every unit.
    * The released code adds a forget bias (initially 1) to b_F; b_F here is the total.
    * h_0 = 0.

References:
    Kuo et al. (2020), An Input Residual Connection for Simplifying Gated RNNs, (45)-(47).
    Kusupati et al. (2018), FastGRNN, arXiv:1901.02358, section 3.2.1.
"""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def run(
    weights: dict[str, Array],
    x: Array,
    *,
    shared: bool = False,
    state: dict[str, Array] | None = None,
) -> tuple[Array, dict[str, Array], dict[str, Array]]:
    r"""Run one sequence, step by step.

    .. math::
        f_t &= \sigma(W_F x_t + U_F h_{t-1} + b_F) & (45) \\
        a_t &= \tanh(W_A x_t + U_A h_{t-1} + b_A) & (46) \\
        h_t &= f_t \odot h_{t-1} + (\beta (1 - f_t) + \kappa) \odot a_t & (47)

    with beta = sigma(u_beta), kappa = sigma(u_kappa), and W_F = W_A, U_F = U_A when shared.

    Args:
        weights: ``W_F, W_A`` (M, N) and ``U_F, U_A`` (M, M), or when shared ``W`` (M, N) and ``U``
            (M, M); ``b_F, b_A`` (M,); ``u_beta, u_kappa`` of shape () or (1,).
        x: (T, N).
        shared: one W and one U for gate and candidate.
        state: ``h`` (M,) to start from.

    Returns:
        h (T, M); the final ``h``; and per step ``f``, ``a``.
    """
    W_F, W_A, U_F, U_A = (weights[k[0] if shared else k] for k in ("W_F", "W_A", "U_F", "U_A"))
    beta, kappa = _sigma(weights["u_beta"]), _sigma(weights["u_kappa"])
    h = (state or {}).get("h", np.zeros(U_F.shape[0]))
    hs, fs, as_ = [], [], []
    for t in range(x.shape[0]):
        f = _sigma(W_F @ x[t] + U_F @ h + weights["b_F"])
        a = np.tanh(W_A @ x[t] + U_A @ h + weights["b_A"])
        h = f * h + (beta * (1 - f) + kappa) * a
        hs.append(h)
        fs.append(f)
        as_.append(a)
    return np.array(hs), {"h": h}, {"f": np.array(fs), "a": np.array(as_)}


def _sigma(z: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * z)))
