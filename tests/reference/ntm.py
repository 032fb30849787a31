"""Neural Turing machine: Chandar's thesis (2.48)-(2.57), after Graves et al. (2014)."""

import numpy as np

from reference.controllers import (
    ControllerStep,
    controller_shapes,
    controller_step,
    head_output,
    head_shapes,
)
from reference.maths import cosine, one_hot, sigmoid, softmax, softplus
from reference.result import Array, Run, Shapes, State, Weights, stack


def shapes(
    input_size: int,
    hidden_size: int,
    *,
    cell_size: int,
    read_heads: int = 1,
    write_heads: int = 1,
    shift_width: int = 3,
    controller: str = "lstm",
) -> Shapes:
    """Names and shapes of the weights."""
    address = {"k": cell_size, "beta": 1, "g": 1, "s": shift_width, "gamma": 1}
    write = {"e": cell_size, "a": cell_size}
    named = controller_shapes(controller, input_size, hidden_size, read_heads * cell_size)
    for n in range(read_heads):
        named |= head_shapes(address, f"r{n}", input_size, hidden_size)
    for n in range(write_heads):
        named |= head_shapes(address | write, f"w{n}", input_size, hidden_size)
    return named


def initial_state(
    hidden_size: int, *, cells: int, cell_size: int, read_heads: int = 1, write_heads: int = 1
) -> dict[str, Array]:
    """h = c = 0, memory 1e-6 everywhere, and every head on cell 0."""
    return {
        "h": np.zeros(hidden_size),
        "c": np.zeros(hidden_size),
        "M": np.full((cells, cell_size), 1e-6),
        "w_r": np.stack([one_hot(0, cells)] * read_heads),
        "w_w": np.stack([one_hot(0, cells)] * write_heads),
    }


def address(
    weights: Weights, head: str, x: Array, h: Array, M: Array, w_old: Array, floor: float
) -> dict[str, Array]:
    r"""The weights of one head: content (2.54), interpolation (2.55), shift (2.56), sharpening
    (2.57)."""
    cells = len(M)
    k = head_output(weights, "k", head, x, h)
    beta = softplus(head_output(weights, "beta", head, x, h))[0]
    g = sigmoid(head_output(weights, "g", head, x, h))[0]
    s = softmax(head_output(weights, "s", head, x, h))
    gamma = 1 + softplus(head_output(weights, "gamma", head, x, h))[0]

    w_c = softmax(np.array([beta * cosine(k, M[i], floor) for i in range(cells)]))
    w_g = g * w_c + (1 - g) * w_old
    w_tilde = np.zeros(cells)
    for i in range(cells):
        for n in range(len(s)):
            shift = n - len(s) // 2
            w_tilde[i] += s[n] * w_g[(i - shift) % cells]
    w = w_tilde**gamma / np.sum(w_tilde**gamma)
    return {"w": w, "w_c": w_c, "w_g": w_g, "w_tilde": w_tilde}


def run(
    weights: Weights,
    x: Array,
    *,
    state: State,
    controller: str = "lstm",
    write_address: str = "after",
    floor: float = 1e-8,
    step: ControllerStep = controller_step,
) -> Run:
    r"""Take one sequence through the cell.

    At each step: every read head addresses the memory left by the step before, and reads

    .. math:: r_t = M^\top w^r_t; \tag{2.48}

    the controller moves, :math:`h_t = g(x_t, h_{t-1}, [r_t^1; r_t^2; \ldots])` (2.49)-(2.50);
    every write head addresses the same memory and changes it,

    .. math:: M_t[i] = M_{t-1}[i] \odot (1 - w^w_t[i] e_t) + w^w_t[i] a_t. \tag{2.52}

    A head turns an input and a hidden state into
    :math:`k_t = \mathrm{lin}`, :math:`\beta_t = \mathrm{softplus}(\mathrm{lin})`,
    :math:`g_t = \sigma(\mathrm{lin})`, :math:`s_t = \mathrm{softmax}(\mathrm{lin})`,
    :math:`\gamma_t = 1 + \mathrm{softplus}(\mathrm{lin})`, and for writing
    :math:`e_t = \sigma(\mathrm{lin})`, :math:`a_t = \mathrm{lin}`, each lin with its own weights.

    Left open by the paper:
        - Read heads are linear in (x_t, h_{t-1}), as (2.53); write heads in (x_t, h_t), as (2.51):
          where to write may depend on what was just read. With ``write_address="before"`` the write
          weights are derived "in similar way as read weights", so from (x_t, h_{t-1}), while a_t
          reads h_t as in (2.51), and e_t, of which the thesis does not say, likewise.
        - The feed-forward controller is tanh of a linear map of x_t and the reads. Its h is still
          carried, for the read heads. The LSTM controller has no peepholes.
        - Key and added vector are not squashed.
        - S is the cosine, each norm floored at 1e-8.
        - Entry n of s_t is the shift n - floor(width / 2), so for width 3 the order is -1, 0, +1;
          shift +1 moves weight from cell j to cell j + 1.
        - (2.57) has no constant in its denominator: weights sum to one exactly.
        - With several write heads all erase factors are multiplied in before anything is added
          (Graves et al., section 3.2), and all heads address the memory as it was before.
        - Several reads are concatenated in the order of the heads.
        - Initially h = c = 0, the memory is 1e-6 and every head sits on cell 0. With equal cells
          *and* uniform weights all cells would stay equal for ever.
        - The output is h_t.

    Args:
        weights: the controller's (``controllers.py``: ``W_x* (H, I)``, ``W_h* (H, H)``,
            ``W_r* (H, R q)``, ``b_* (H,)``); for read head n, with suffix ``_r{n}``, and write head
            n, with suffix ``_w{n}``: ``W_xk (q, I)``, ``W_hk (q, H)``, ``b_k (q,)``; likewise
            ``beta``, ``g``, ``gamma`` with one row and ``s`` with one row per shift; write heads
            also ``e`` and ``a`` with q rows. Example: ``W_hbeta_r0 (1, H)``.
        x: ``(T, I)``.
        state: ``h (H,)``, ``c (H,)``, ``M (k, q)``, ``w_r (R, k)``, ``w_w (W, k)``; see
            ``initial_state``.
        controller: ``"lstm"``, ``"gru"``, ``"rnn"`` or ``"ff"``.
        write_address: ``"after"`` or ``"before"`` the controller's step.
        floor: of the norms in the cosine.

    Returns:
        outputs :math:`h_t`; state as above; steps ``h``, ``c``, ``M``, ``w_r``, ``w_w``,
        ``r (T, R, q)``, ``w_c_r``, ``w_g_r``, ``w_tilde_r`` (the stages of the read weights).
    """
    h, c, M = state["h"], state["c"], state["M"]
    w_r, w_w = state["w_r"], state["w_w"]
    records = []
    for x_t in x:
        read = [address(weights, f"r{n}", x_t, h, M, w_r[n], floor) for n in range(len(w_r))]
        w_r = np.stack([stages["w"] for stages in read])
        r = np.stack([M.T @ w for w in w_r])
        old = h
        h, c = step(controller, weights, x_t, h, c, np.concatenate(list(r)))

        seen = {"before": old, "after": h}[write_address]
        w_w = np.stack(
            [address(weights, f"w{n}", x_t, seen, M, w_w[n], floor)["w"] for n in range(len(w_w))]
        )
        new = M.copy()
        for n in range(len(w_w)):
            e = sigmoid(head_output(weights, "e", f"w{n}", x_t, h))
            for i in range(len(M)):
                new[i] = new[i] * (1 - w_w[n, i] * e)
        for n in range(len(w_w)):
            a = head_output(weights, "a", f"w{n}", x_t, h)
            for i in range(len(M)):
                new[i] = new[i] + w_w[n, i] * a
        M = new
        record = {"h": h, "c": c, "M": M, "w_r": w_r, "w_w": w_w, "r": r}
        for stage in ("w_c", "w_g", "w_tilde"):
            record[f"{stage}_r"] = np.stack([stages[stage] for stages in read])
        records.append(record)
    steps = stack(records)
    return Run(steps["h"], {"h": h, "c": c, "M": M, "w_r": w_r, "w_w": w_w}, steps)
