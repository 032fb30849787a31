"""TARDIS, an LSTM with wormhole connections: Chandar's thesis, chapter 3."""

import numpy as np

from reference.maths import log_softmax, one_hot, sigmoid, softmax, softplus
from reference.result import Array, Run, Shapes, State, Weights, stack


def shapes(
    input_size: int,
    hidden_size: int,
    *,
    cells: int,
    address_size: int,
    content_size: int,
    attention_size: int,
) -> Shapes:
    """Names and shapes of the weights that ``run`` reads."""
    q = address_size + content_size
    named: Shapes = {
        "A": (cells, address_size),
        "a": (attention_size,),
        "W_gamma_h": (attention_size, hidden_size),
        "W_gamma_x": (attention_size, input_size),
        "W_gamma_m": (attention_size, q),
        "W_gamma_u": (attention_size, cells),
        "b_gamma": (attention_size,),
        "w_tau": (hidden_size,),
        "b_tau": (),
        "W_m": (content_size, hidden_size),
        "b_m": (content_size,),
    }
    for gate in "fioc":
        named[f"W_{gate}_h"] = (hidden_size, hidden_size)
        named[f"W_{gate}_x"] = (hidden_size, input_size)
        named[f"W_{gate}_r"] = (hidden_size, q)
        named[f"b_{gate}"] = (hidden_size,)
    for gate in ("alpha", "beta"):
        named[f"w_{gate}_h"] = (hidden_size,)
        named[f"w_{gate}_x"] = (input_size,)
        named[f"w_{gate}_r"] = (q,)
        named[f"b_{gate}"] = ()
    return named


def initial_state(hidden_size: int, *, cells: int, content_size: int) -> dict[str, Array]:
    """Everything zero; no cell read yet (``last_read`` = -1) and no step taken."""
    return {
        "h": np.zeros(hidden_size),
        "c": np.zeros(hidden_size),
        "C": np.zeros((cells, content_size)),
        "usage": np.zeros(cells),
        "last_read": np.array(-1),
        "t": np.array(0),
    }


def normalised_usage(counts: Array, eps: float) -> Array:
    """norm of (3.6): centre over the cells and divide by the standard deviation."""
    k = len(counts)
    mean = sum(counts) / k
    variance = sum((counts - mean) ** 2) / k
    return np.asarray((counts - mean) / np.sqrt(variance + eps))


Norms = dict[str, tuple[Array, Array]]
"""Gain and shift of each vector that is normalised: ``x``, ``h``, ``r`` and ``c``."""


def layer_norm(z: Array, gain: Array, shift: Array, eps: float = 1e-5) -> Array:
    """Ba et al. (2016): centred and scaled over the units of one vector."""
    mean = sum(z) / len(z)
    variance = sum((z - mean) ** 2) / len(z)
    return np.asarray(gain * (z - mean) / np.sqrt(variance + eps) + shift)


def run(
    weights: Weights,
    x: Array,
    *,
    state: State,
    xi: Array | None = None,
    read_index: Array | None = None,
    gate_noise: Array | None = None,
    reset_gates: bool = True,
    growing: bool = False,
    norms: Norms | None = None,
    masks: Array | None = None,
    penalty: float = 100.0,
    gate_temperature: float = 0.3,
    eps: float = 1e-5,
) -> Run:
    r"""Take one sequence through the cell.

    Step t = 1, 2, ... with :math:`M_{t-1} = [A; C_{t-1}]`, the memory before this step's write:

    .. math::
        u_t &= \mathrm{norm}\Big(\sum_{i<t} w^r_i\Big) \tag{3.6} \\
        \pi_t[i] &= a^\top \tanh(W^\gamma_h h_{t-1} + W^\gamma_x x_t + W^\gamma_m M_{t-1}[i]
            + W^\gamma_u u_t + b^\gamma) - 100 \, [i = \text{last read}] \tag{3.4} \\
        \bar w_t &= \mathrm{softmax}(\pi_t) \quad\text{or}\quad
            \mathrm{softmax}((\pi_t + \xi_t) \, \tau_t), \quad
            \tau_t = \mathrm{softplus}(w^{\tau\top} h_{t-1} + b^\tau) + 1
            \tag{3.5, 3.18, 3.19} \\
        w_t &= \text{one-hot of a sample from, or the argmax of, } \bar w_t \\
        r_t &= M_{t-1}^\top w_t \tag{3.1} \\
        f_t, i_t, o_t &= \sigma(W_h h_{t-1} + W_x x_t + W_r r_t + b) \tag{3.7} \\
        \alpha_t, \beta_t &= \sigma\big((w_h^\top h_{t-1} + w_x^\top x_t + w_r^\top r_t + b
            + \ell_t) / 0.3\big) \tag{3.9} \\
        \tilde c_t &= \tanh(\alpha_t W^c_h h_{t-1} + W^c_x x_t + \beta_t W^c_r r_t + b^c),
            \quad c_t = f_t \odot c_{t-1} + i_t \odot \tilde c_t \tag{3.8} \\
        h_t &= o_t \odot \tanh(c_t) \tag{3.10} \\
        C_t[j] &= W_m h_t + b_m, \quad j = t - 1 \text{ (counting from 0) if } t \le k
            \text{, else the cell just read} \tag{3.2}

    A is never written. Step t of the fill writes cell t - 1 whatever was read; the fill happens
    once per sequence.

    Left open by the paper:
        - (3.4) and (3.18) print h_t, which does not exist yet when Algorithm 1 reads: h_{t-1}.
        - Unwritten cells may be read while the memory fills (they hold their address and zeros),
          and such reads count in the usage. Nothing is masked.
        - u_t enters every cell's logit as a whole vector, as printed. norm is over the k cells
          of one example, with variance over k and 1e-5 inside the root, so u_1 = 0.
        - 100 is subtracted from pi before noise and temperature; nothing at the first step. "Last
          read" is the cell read at step t - 1.
        - With Gumbel noise the one-hot is the argmax of the perturbed weights, which already is a
          sample (Gumbel-max); nothing is drawn a second time. Ties go to the lowest index.
        - The gate noise is logistic, the difference of two Gumbel draws, and the gates stay soft
          in the forward pass. Without noise they are sigmoid(logit / 0.3).
        - alpha gates h and beta gates r, as (3.8); the caption of figure 3.1 has it reversed.
        - "We will omit biases": every map has one except the vector a. The bias in (3.8) is not
          gated.
        - With ``growing`` only the t - 1 cells that have been written exist at step t: the softmax,
          the usage and its normalisation are over them, r_1 = 0 and the first step reads nothing.
        - Layer normalisation (``norms``): the sums of x, of h and of r over all gates, alpha and
          beta included, are three vectors, each normalised on its own before they are added, and
          the bias after; h_t = o tanh(LN(c_t)). Recurrent dropout multiplies c~ by ``masks[t]``.
        - h_0 = c_0 = C_0 = 0. The output is h_t; predictions also see r_t, through ``fuse``.

    Args:
        weights: ``A (k, d_a)`` fixed; attention of size d: ``a (d,)``, ``W_gamma_h (d, H)``,
            ``W_gamma_x (d, I)``, ``W_gamma_m (d, q)``, ``W_gamma_u (d, k)``, ``b_gamma (d,)``;
            ``w_tau (H,)``, ``b_tau ()``; ``W_m (d_c, H)``, ``b_m (d_c,)``; for each g of f, i, o,
            c: ``W_g_h (H, H)``, ``W_g_x (H, I)``, ``W_g_r (H, q)``, ``b_g (H,)``; for each g of
            alpha, beta: ``w_g_h (H,)``, ``w_g_x (I,)``, ``w_g_r (q,)``, ``b_g ()``. q = d_a + d_c.
        x: ``(T, I)``.
        state: ``h``, ``c`` ``(H,)``, ``C (k, d_c)``, ``usage (k,)`` (reads of each cell so far),
            ``last_read ()`` (-1 before the first), ``t ()``; see ``initial_state``.
        xi: Gumbel draws ``(T, k)``; ``None`` uses the plain softmax (3.5).
        read_index: cells sampled elsewhere, ``(T,)`` (REINFORCE); ``None`` takes the argmax.
        gate_noise: logistic draws ``(T, 2)`` for alpha and beta; ``None`` means zero.
        reset_gates: ``False`` fixes alpha = beta = 1 (the rows of table 3.1 without "+ R").
        penalty: subtracted from the logit of the last read cell.
        gate_temperature: of the Gumbel-sigmoid.
        eps: in the normalisation of the usage.

    Returns:
        outputs :math:`h_t`; state as above; steps ``h``, ``c``, ``C``, ``r``, ``u``, ``pi`` (after
        the penalty), ``tau``, ``w_bar``, ``w``, ``read``, ``write`` (indices), ``log_prob`` (log of
        softmax(pi) at the cell read: how probable that read was), ``alpha``, ``beta``, ``f``,
        ``i``, ``o``.
    """
    A = weights["A"]
    k = len(A)
    h, c, C = state["h"], state["c"], state["C"]
    usage, last_read, start = state["usage"], int(state["last_read"]), int(state["t"])

    names = ["i", "f", "c", "o"]

    def sums(r: Array, x_t: Array) -> dict[str, dict[str, Array]]:
        """What x, h and r each add to every gate, normalised where that is asked for."""
        parts: dict[str, dict[str, Array]] = {}
        for side, value in (("x", x_t), ("h", h), ("r", r)):
            rows = [weights[f"W_{g}_{side}"] @ value for g in names]
            if reset_gates:
                rows += [np.array([weights[f"w_{g}_{side}"] @ value]) for g in ("alpha", "beta")]
            whole = np.concatenate(rows)
            if norms is not None:
                whole = layer_norm(whole, *norms[side])
            ends = np.cumsum([len(row) for row in rows])[:-1]
            keys = [*names, "alpha", "beta"][: len(rows)]
            parts[side] = dict(zip(keys, np.split(whole, ends), strict=True))
        return parts

    records = []
    for n, x_t in enumerate(x):
        M = np.concatenate([A, C], axis=1)
        there = min(start + n, k) if growing else k
        u = np.zeros(k)
        u[:there] = normalised_usage(usage[:there], eps) if there else 0.0
        pi = np.full(k, -np.inf)
        for cell in range(there):
            pi[cell] = weights["a"] @ np.tanh(
                weights["W_gamma_h"] @ h
                + weights["W_gamma_x"] @ x_t
                + weights["W_gamma_m"] @ M[cell]
                + weights["W_gamma_u"] @ u
                + weights["b_gamma"]
            )
        if last_read >= 0:
            pi[last_read] -= penalty
        tau = float(softplus(weights["w_tau"] @ h + weights["b_tau"])) + 1
        logits = pi if xi is None else (pi + xi[n]) * tau
        if there:
            w_bar = softmax(logits)
            read = int(np.argmax(w_bar)) if read_index is None else int(read_index[n])
            w, log_prob = one_hot(read, k), log_softmax(pi)[read]
        else:
            w_bar, read, w, log_prob = np.zeros(k), -1, np.zeros(k), 0.0
        r = M.T @ w

        part = sums(r, x_t)
        total = {
            g: part["x"][g] + part["h"][g] + part["r"][g] + weights[f"b_{g}"] for g in part["x"]
        }
        f, i, o = sigmoid(total["f"]), sigmoid(total["i"]), sigmoid(total["o"])
        alpha = beta = 1.0
        if reset_gates:
            noise = np.zeros(2) if gate_noise is None else gate_noise[n]
            alpha = float(sigmoid((total["alpha"][0] + noise[0]) / gate_temperature))
            beta = float(sigmoid((total["beta"][0] + noise[1]) / gate_temperature))
        c_tilde = np.tanh(
            alpha * part["h"]["c"] + part["x"]["c"] + beta * part["r"]["c"] + weights["b_c"]
        )
        c = f * c + i * c_tilde * (1.0 if masks is None else masks[n])
        h = o * np.tanh(c if norms is None else layer_norm(c, *norms["c"]))

        t = start + n + 1
        write = t - 1 if t <= k else read
        C = C.copy()
        C[write] = weights["W_m"] @ h + weights["b_m"]
        usage = usage + w
        last_read = read
        records.append(
            {"h": h, "c": c, "C": C, "r": r, "u": u, "pi": pi, "tau": tau, "w_bar": w_bar}
            | {"w": w, "read": read, "write": write, "log_prob": log_prob}
            | {"alpha": alpha, "beta": beta, "f": f, "i": i, "o": o}
        )
    steps = stack(records)
    final = {
        "h": h,
        "c": c,
        "C": C,
        "usage": usage,
        "last_read": np.array(last_read),
        "t": np.array(start + len(x)),
    }
    return Run(steps["h"], final, steps)


def fuse(weights: Weights, h: Array, r: Array) -> Array:
    r"""g(h_t, r_t) of (3.11): tanh(W_g_h h + W_g_r r + b_g).

    Left open by the paper: the single layer's activation, tanh here.
    """
    return np.asarray(np.tanh(weights["W_g_h"] @ h + weights["W_g_r"] @ r + weights["b_g"]))


def predict(weights: Weights, h: Array, r: Array) -> Array:
    """o_t of (3.11): softmax(W_o g(h, r) + b_o)."""
    return softmax(weights["W_o"] @ fuse(weights, h, r) + weights["b_o"])


def log_likelihood(predictions: Array, targets: Array) -> Array:
    """The reward R of each step: log o_t[y_t], from ``(T, V)`` and class indices ``(T,)``."""
    return np.array([np.log(o[y]) for o, y in zip(predictions, targets, strict=True)])


def auxiliary_reward(weights: Weights, r: Array, x: Array, targets: Array) -> Array:
    r"""R' of (3.17), ``(T,)``: log softmax(W_o_r r_t + W_o_x x_t)[y_t].

    Trained on its own, without gradient into r. Left open by the paper: whether r is the whole
    cell or its content; here all of what was read, so ``W_o_r`` is ``(V, q)`` and ``W_o_x`` is
    ``(V, I)``. No bias, as printed.
    """
    rewards = []
    for r_t, x_t, y in zip(r, x, targets, strict=True):
        rewards.append(log_softmax(weights["W_o_r"] @ r_t + weights["W_o_x"] @ x_t)[y])
    return np.array(rewards)


def update_baseline(baseline: Array, rewards: Array, decay: float = 0.9) -> Array:
    r"""b_j <- 0.9 b_j + 0.1 mean_i R_ij, from rewards ``(N, T)`` to a baseline ``(T,)``.

    Left open by the paper: how b_j is learned. This is the moving average of Mnih and Gregor
    (2014), one for each step. Update, then centre.
    """
    return np.asarray(decay * baseline + (1 - decay) * rewards.mean(axis=0))


def update_variance(variance: float, centred: Array, decay: float = 0.9) -> float:
    r"""v <- 0.9 v + 0.1 var(R - b), the variance over all N T entries."""
    return decay * variance + (1 - decay) * float(np.var(centred))


def discounted_return(centred: Array, discount: float) -> Array:
    r"""G_t = sum_{j >= t} discount^(j - t) (R_j - b_j) of (3.16), for ``(N, T)``."""
    examples, steps = centred.shape
    returns = np.zeros((examples, steps))
    for i in range(examples):
        for t in range(steps):
            for j in range(t, steps):
                returns[i, t] += discount ** (j - t) * centred[i, j]
    return returns


def learning_signal(
    rewards: Array, baseline: Array, variance: float, discount: float, decay: float = 0.9
) -> tuple[Array, Array, float]:
    r"""Returns ``(N, T)`` divided by max(1, sqrt(v)), with the new baseline and variance.

    Left open by the paper: "variance normalisation" is that of Mnih and Gregor (2014), with the
    standard deviation floored at one. Both averages are updated with this batch before use.
    """
    baseline = update_baseline(baseline, rewards, decay)
    centred = rewards - baseline
    variance = update_variance(variance, centred, decay)
    signal = discounted_return(centred, discount) / max(1.0, variance**0.5)
    return signal, baseline, variance


def reinforce_loss(log_probs: Array, signal: Array) -> float:
    r"""-(1/N) sum_i sum_t signal_it log w_bar_it: descending it follows (3.16)."""
    return -float(np.sum(signal * log_probs)) / len(log_probs)
