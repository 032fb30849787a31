"""Dynamic neural Turing machine: Chandar's thesis (2.58)-(2.69), after Gulcehre et al. (2016)."""

import numpy as np

from reference.controllers import (
    ControllerStep,
    controller_shapes,
    controller_step,
    head_output,
    head_shapes,
)
from reference.maths import cosine, one_hot, relu, sigmoid, softmax, softplus
from reference.result import Array, Run, Shapes, State, Weights, stack


def shapes(
    input_size: int,
    hidden_size: int,
    *,
    cells: int,
    address_size: int,
    content_size: int,
    controller: str = "gru",
) -> Shapes:
    """Names and shapes of the weights."""
    q = address_size + content_size
    named: Shapes = {"A": (cells, address_size)}
    named |= controller_shapes(controller, input_size, hidden_size, q)
    for head in ("r", "w"):
        named |= head_shapes({"k": q, "beta": 1, "gamma": 1}, head, input_size, hidden_size)
    named |= head_shapes({"e": content_size, "alpha": 1}, "w", input_size, hidden_size)
    named |= {"W_m": (content_size, hidden_size), "W_x": (content_size, input_size)}
    return named


def initial_state(hidden_size: int, *, cells: int, content_size: int) -> dict[str, Array]:
    """Everything zero: controller, content and the moving averages of both heads."""
    return {
        "h": np.zeros(hidden_size),
        "c": np.zeros(hidden_size),
        "C": np.zeros((cells, content_size)),
        "v_r": np.zeros(cells),
        "v_w": np.zeros(cells),
    }


def run(
    weights: Weights,
    x: Array,
    *,
    state: State,
    controller: str = "gru",
    write_address: str = "after",
    discrete: bool = False,
    read_index: Array | None = None,
    write_index: Array | None = None,
    nop: bool = True,
    hops: int = 1,
    decay: float = 0.1,
    floor: float = 1e-4,
    step: ControllerStep = controller_step,
) -> Run:
    r"""Take one sequence through the cell.

    Each head keeps a moving average v of its own logits. With :math:`M_{t-1} = [A; C_{t-1}]`
    (2.58), key :math:`k_t`, strength :math:`\beta_t` and gate :math:`\gamma_t` of that head:

    .. math::
        z_t[i] &= \beta_t S[k_t, M_{t-1}[i]] \tag{2.66} \\
        w_t &= \mathrm{softmax}(z_t - \gamma_t v_{t-1}) \tag{2.68} \\
        v_t &= 0.1 \, v_{t-1} + 0.9 \, z_t \tag{2.67}

    One step addresses and reads, :math:`r_t = M_{t-1}^\top w^r_t` (2.59), moves the controller,
    :math:`h_t = g(x_t, h_{t-1}, r_t)` (2.60)-(2.61), then addresses and writes:

    .. math::
        \alpha_t &= \sigma(\mathrm{lin}(x_t, h_t)) \tag{2.63} \\
        c_t &= \mathrm{ReLU}(W_m h_t + \alpha_t W_x x_t) \tag{2.62} \\
        C_t[i] &= C_{t-1}[i] \odot (1 - w^w_t[i] e_t) + w^w_t[i] c_t \tag{2.64}

    ``discrete`` replaces w by the one-hot of a given index, or of the argmax when none is given
    (2.69). The address part A is a weight: learned, and never written.

    Left open by the paper:
        - The read head is linear in (x_t, h_{t-1}), as (2.65); the write head in (x_t, h_t), as
          (2.62)-(2.63). With ``write_address="before"`` the write weights come from (x_t, h_{t-1}),
          as (2.65) "holds for the write heads as well"; alpha_t and c_t still read h_t, as printed,
          and e_t, of which the thesis does not say, likewise.
        - beta = 1 + softplus(lin), gamma = sigmoid(lin), e = sigmoid(lin); the key is linear.
          (2.62) has no bias, as printed.
          The authors' released code has no 1 in beta and subtracts the average before scaling.
        - S is the cosine, each norm floored at 1e-4.
        - Both heads use the least-recently-used term, each with its own v, v_0 = 0. The logits
          averaged are z_t, before the subtraction; the same in discrete mode.
        - The NOP cell is the last of the k. It has an address and takes part in the softmax, but
          its share of a read counts as zero (r_t is zero when it alone is read) and its content is
          never written, so it stays at zero.
        - C_0 = 0, as printed.
        - The multi-step variant is only mentioned, with Sukhbaatar et al. (2015), whose query of
          the next hop is the last one plus what was read: k^{j+1} = k^j + sum_i w^j[i] M[i], where
          the NOP cell counts as zero. gamma, beta and v_{t-1} are the same in all hops; the last
          one's weights are used, and its logits averaged. Given indices are ``(T, hops)``.
        - The output is h_t. Index draws follow the row order of A.

    Args:
        weights: ``A (k, d_a)``; the controller's (``controllers.py``, read vector of size
            q = d_a + d_c); for head s of r (read), w (write): ``W_xk_s (q, I)``, ``W_hk_s (q, H)``,
            ``b_k_s (q,)``, likewise ``beta`` and ``gamma`` with one row; ``W_xe_w (d_c, I)``,
            ``W_he_w``, ``b_e_w``, ``W_xalpha_w (1, I)``, ``W_halpha_w``, ``b_alpha_w``;
            ``W_m (d_c, H)``, ``W_x (d_c, I)``.
        x: ``(T, I)``.
        state: ``h (H,)``, ``c (H,)`` (LSTM controller only; otherwise unchanged), ``C (k, d_c)``,
            ``v_r (k,)``, ``v_w (k,)``; see ``initial_state``.
        controller: ``"gru"``, ``"lstm"``, ``"rnn"`` or ``"ff"``.
        write_address: ``"after"`` or ``"before"`` the controller's step.
        discrete: use one-hot weights.
        read_index: sampled cells to read, ``(T,)``.
        write_index: sampled cells to write, ``(T,)``.
        nop: treat the last cell as the NOP cell.
        decay: the share of the old average in (2.67).
        floor: of the norms in the cosine.

    Returns:
        outputs :math:`h_t`; state as above; steps ``h``, ``c``, ``C``, ``r``, ``alpha``, and for
        both heads s: ``z_s``, ``v_s``, ``p_s`` (softmax of (2.68)), ``w_s`` (weights used).
    """
    A = weights["A"]
    cells = len(A)
    working = cells - 1 if nop else cells
    h, c, C = state["h"], state["c"], state["C"]
    v = {"r": state["v_r"], "w": state["v_w"]}
    index = {"r": read_index, "w": write_index}

    def address(head: str, t: int, hidden: Array, M: Array) -> dict[str, Array]:
        k = head_output(weights, "k", head, x[t], hidden)
        beta = 1 + softplus(head_output(weights, "beta", head, x[t], hidden))[0]
        gamma = sigmoid(head_output(weights, "gamma", head, x[t], hidden))[0]
        given, log_p = index[head], 0.0
        for hop in range(hops):
            z = np.array([beta * cosine(k, M[i], floor) for i in range(cells)])
            p = softmax(z - gamma * v[head])
            if not discrete:
                w = p
            elif given is None:
                w = one_hot(int(np.argmax(p)), cells)
            else:
                w = one_hot(int(np.reshape(given[t], -1)[hop]), cells)
            log_p += float(np.log(p @ w)) if discrete else 0.0
            k = k + sum(w[i] * M[i] for i in range(working))
        v[head] = decay * v[head] + (1 - decay) * z
        named = {f"z_{head}": z, f"v_{head}": v[head], f"p_{head}": p, f"w_{head}": w}
        return named | {f"log_{head}": np.array(log_p)}

    records = []
    for t, x_t in enumerate(x):
        M = np.concatenate([A, C], axis=1)
        read = address("r", t, h, M)
        r = np.zeros(M.shape[1])
        for i in range(working):
            r = r + read["w_r"][i] * M[i]
        old = h
        h, c = step(controller, weights, x_t, h, c, r)

        write = address("w", t, {"before": old, "after": h}[write_address], M)
        alpha = sigmoid(head_output(weights, "alpha", "w", x_t, h))[0]
        content = relu(weights["W_m"] @ h + alpha * (weights["W_x"] @ x_t))
        e = sigmoid(head_output(weights, "e", "w", x_t, h))
        C = C.copy()
        for i in range(working):
            C[i] = C[i] * (1 - write["w_w"][i] * e) + write["w_w"][i] * content
        records.append({"h": h, "c": c, "C": C, "r": r, "alpha": alpha, **read, **write})
    steps = stack(records)
    final = {"h": h, "c": c, "C": C, "v_r": v["r"], "v_w": v["w"]}
    return Run(steps["h"], final, steps)
