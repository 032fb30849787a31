r"""DecayNet: an LSTM whose forget gate is the sine of an angle that only shrinks.

Left open by the paper:
    * The paper's own display of the forget gate (section 4) was not available in readable form; its
      prose was. It names the increment pi/2 * 1/6 * (W_F x + W_RF q + 3) spread over D steps, the
      start at pi/2 and the sine: the thesis's equations (section 4.1.4). The two are taken to be
      one form.
    * Neither writes a forget bias, so there is none, and passing ``b_F`` is an error.
    * The clamp acts on f only. The angle p itself is carried unclamped, so it may leave
      [0, pi/2] and come back.
    * f_t is computed from the angle after this step's decrement (p_t, not p_{t-1}).
    * h_0 = c_0 = 0.
    * D is the length of the sequence unless given. With two inner iterations per optimiser step
      (section 4.1.6.2) the cell runs on a doubled input with D = 2 and p put back to pi/2 first:
      pass ``state`` and ``D``.

The thesis writes U, h, c where the paper writes W_R, q, s.

References:
    Kuo et al. (2018), DecayNet: A Study on the Cell States of Long Short Term Memories.
    Kuo (2021), Dynamic Mathematics for Automated Machine Learning Techniques, thesis,
    sections 4.1.2 and 4.1.4.
"""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def run(
    weights: dict[str, Array],
    x: Array,
    *,
    D: int | None = None,
    state: dict[str, Array] | None = None,
) -> tuple[Array, dict[str, Array], dict[str, Array]]:
    r"""Run one sequence, step by step.

    .. math::
        i_t, o_t &= \sigma(W_{\{I,O\}} x_t + U_{\{I,O\}} h_{t-1} + b_{\{I,O\}}) \\
        a_t &= \tanh(W_A x_t + U_A h_{t-1} + b_A) \\
        p_t &= p_{t-1} - \tfrac{\pi}{2D} \tfrac16 (W_F x_t + U_F h_{t-1} + 3), \quad p_0 = \pi/2 \\
        f_t &= 1 \text{ if } p_t > \pi/2, \; 0 \text{ if } p_t < 0, \; \sin p_t \text{ otherwise} \\
        c_t &= f_t \odot c_{t-1} + i_t \odot a_t \\
        h_t &= o_t \odot \tanh(c_t)

    Args:
        weights: ``W_F, W_I, W_O, W_A`` (N, M); ``U_F, U_I, U_O, U_A`` (N, N); ``b_I, b_O, b_A``
            (N,), with M inputs and N units as in the paper.
        x: (T, M).
        D: number of steps over which the gate may fall from one to zero; ``None`` means T.
        state: ``h``, ``c``, ``p`` (N,) to start from instead of zeros and pi/2.

    Returns:
        h (T, N); the final ``h``, ``c``, ``p``; and per step ``pre`` (the forget pre-activation
        before the +3), ``p``, ``f``, ``i``, ``o``, ``a``, ``c``.
    """
    if "b_F" in weights:
        raise ValueError("DecayNet has no forget bias: expected no b_F among the weights.")
    T, N = x.shape[0], weights["U_F"].shape[0]
    D = T if D is None else D
    start = {"h": np.zeros(N), "c": np.zeros(N), "p": np.full(N, np.pi / 2)} | (state or {})
    h, c, p = start["h"], start["c"], start["p"]

    steps: dict[str, list[Array]] = {k: [] for k in ("h", "pre", "p", "f", "i", "o", "a", "c")}
    for t in range(T):
        gate = {
            k: weights[f"W_{k}"] @ x[t] + weights[f"U_{k}"] @ h + weights[f"b_{k}"] for k in "IOA"
        }
        i, o, a = _sigma(gate["I"]), _sigma(gate["O"]), np.tanh(gate["A"])
        pre = weights["W_F"] @ x[t] + weights["U_F"] @ h
        p = p - np.pi / (2 * D) * (pre + 3) / 6
        f = np.empty(N)
        for n in range(N):
            if p[n] > np.pi / 2:
                f[n] = 1.0
            elif p[n] < 0:
                f[n] = 0.0
            else:
                f[n] = np.sin(p[n])
        c = f * c + i * a
        h = o * np.tanh(c)
        for k, value in zip(steps, (h, pre, p, f, i, o, a, c), strict=True):
            steps[k].append(value)
    per_step = {k: np.array(v) for k, v in steps.items()}
    return per_step.pop("h"), {"h": h, "c": c, "p": p}, per_step


def _sigma(z: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * z)))
