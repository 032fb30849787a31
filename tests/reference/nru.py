"""Non-saturating recurrent unit: Chandar's thesis (4.1)-(4.9)."""

from math import isqrt

import numpy as np

from reference.maths import relu
from reference.result import Array, Run, Shapes, State, Weights, stack

HEADS = ("alpha", "beta", "pw", "qw", "pe", "qe")


def shapes(
    input_size: int,
    hidden_size: int,
    *,
    memory_size: int,
    heads: int,
    heads_read_input: bool = True,
) -> Shapes:
    """Names and shapes of the weights."""
    side = isqrt(heads * memory_size)
    if side * side != heads * memory_size:
        nearby = heads * max(1, isqrt(memory_size // heads)) ** 2
        raise ValueError(
            f"heads * memory_size must be a perfect square, but {heads} * {memory_size} = "
            f"{heads * memory_size}. Try memory_size={nearby}."
        )
    named: Shapes = {
        "W_h": (hidden_size, hidden_size),
        "W_i": (hidden_size, input_size),
        "W_c": (hidden_size, memory_size),
        "b_h": (hidden_size,),
    }
    for head in HEADS:
        rows = heads if head in ("alpha", "beta") else side
        if heads_read_input:
            named[f"W_{head}_x"] = (rows, input_size)
        named[f"W_{head}_h"] = (rows, hidden_size)
        named[f"W_{head}_m"] = (rows, memory_size)
        named[f"b_{head}"] = (rows,)
    return named


def directions(
    p: Array, q: Array, heads: int, *, relu_heads: bool, eps: float, p_norm: float = 5
) -> Array:
    r"""The k directions hidden in two vectors of length sqrt(k m): (4.9) and the text below it.

    Entry ``a * side + b`` of the flattened outer product is ``p[a] q[b]``; head n takes entries
    n m, ..., (n+1) m - 1, applies the optional ReLU and divides by its L5 norm, or that of p_norm.
    """
    side = len(p)
    size = side * side // heads
    flat = np.zeros(side * side)
    for a in range(side):
        for b in range(side):
            flat[a * side + b] = p[a] * q[b]
    v = np.zeros((heads, size))
    for n in range(heads):
        v[n] = flat[n * size : (n + 1) * size]
        if relu_heads:
            v[n] = relu(v[n])
        norm = np.sum(np.abs(v[n]) ** p_norm) ** (1 / p_norm)
        v[n] = v[n] / max(norm, eps)
    return v


def run(
    weights: Weights,
    x: Array,
    *,
    relu_heads: bool = False,
    average_heads: bool = False,
    heads_read_input: bool = True,
    multiplicative: bool = False,
    eps: float = 1e-12,
    p_norm: float = 5,
    state: State | None = None,
) -> Run:
    r"""Take one sequence through the cell.

    .. math::
        h_t &= \mathrm{ReLU}(W_h h_{t-1} + W_i x_t + W_c m_{t-1} + b_h) \tag{4.1} \\
        \alpha, \beta &= f_\alpha(x_t, h_t, m_{t-1}), f_\beta(x_t, h_t, m_{t-1}) \tag{4.3, 4.4} \\
        v^w_1, \ldots, v^w_k &= g(\mathrm{vec}(p^w q^{w\top})) \tag{4.7-4.9} \\
        m_t &= m_{t-1} + \sum_i \alpha_i v^w_i - \sum_i \beta_i v^e_i \tag{4.2}

    Each of alpha, beta, p^w, q^w, p^e, q^e is ``W_*_x x_t + W_*_h h_t + W_*_m m_{t-1} + b_*``.
    The heads see the new h and the old m. ``relu_heads`` puts a ReLU on alpha, on beta and on the
    flattened outer product, never on p or q.

    Left open by the paper:
        - Every linear map has a bias. The equations print none; the published parameter counts
          need them.
        - vec is row by row (column by column would only swap the names of p and q), and the k
          directions are consecutive blocks of it.
        - The L5 norm is floored, v / max(norm, 1e-12), so a zero direction stays zero.
        - h_0 = m_0 = 0.
        - Multiplicative memory is mentioned once, for language modelling, and never defined. Read
          here as the erase of (2.52): what is erased is taken from the present content,
          :math:`m_t = m_{t-1} \odot (1 - \sum_i \beta_i v^e_i) + \sum_i \alpha_i v^w_i`. Scaling
          the memory by both sums would leave m = 0 for ever.

    Args:
        weights: ``W_h (H, H)``, ``W_i (H, I)``, ``W_c (H, M)``, ``b_h (H,)``; for each g of alpha,
            beta (k rows) and pw, qw, pe, qe (sqrt(k M) rows): ``W_g_x (., I)``, ``W_g_h (., H)``,
            ``W_g_m (., M)``, ``b_g (.,)``.
        x: ``(T, I)``.
        relu_heads: non-negative contents and directions (the language-model setting).
        average_heads: divide both sums of (4.2) by the number of heads, as the author's code does.
        heads_read_input: ``False`` drops the terms in x_t, as the author's code does; the weights
            ``W_*_x`` are then not read.
        multiplicative: erase in proportion to the content.
        eps: floor of the norm.
        p_norm: 5 in the thesis, which names 2 as the other one that was tried.
        state: ``h (H,)``, ``m (M,)``.

    Returns:
        outputs :math:`h_t`; state ``h``, ``m``; steps ``h``, ``m``, ``alpha (T, k)``, ``beta``,
        ``v_w (T, k, M)``, ``v_e``.
    """
    hidden_size, memory_size = weights["W_c"].shape
    h = np.zeros(hidden_size) if state is None else state["h"]
    m = np.zeros(memory_size) if state is None else state["m"]
    heads = len(weights["b_alpha"])
    share = 1 / heads if average_heads else 1.0
    records = []
    for x_t in x:
        h = relu(weights["W_h"] @ h + weights["W_i"] @ x_t + weights["W_c"] @ m + weights["b_h"])
        linear = {}
        for g in HEADS:
            linear[g] = weights[f"W_{g}_h"] @ h + weights[f"W_{g}_m"] @ m + weights[f"b_{g}"]
            if heads_read_input:
                linear[g] = linear[g] + weights[f"W_{g}_x"] @ x_t
        alpha, beta = linear["alpha"], linear["beta"]
        if relu_heads:
            alpha, beta = relu(alpha), relu(beta)
        v_w, v_e = (
            directions(linear[p], linear[q], heads, relu_heads=relu_heads, eps=eps, p_norm=p_norm)
            for p, q in (("pw", "qw"), ("pe", "qe"))
        )
        written, erased = np.zeros(memory_size), np.zeros(memory_size)
        for n in range(heads):
            written = written + share * alpha[n] * v_w[n]
            erased = erased + share * beta[n] * v_e[n]
        m = m * (1 - erased) + written if multiplicative else m + written - erased
        records.append({"h": h, "m": m, "alpha": alpha, "beta": beta, "v_w": v_w, "v_e": v_e})
    steps = stack(records)
    return Run(steps["h"], {"h": h, "m": m}, steps)
