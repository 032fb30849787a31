r"""Four ways to normalise or regularise an LSTM, each written out on its own.

All four start from the same LSTM, with the gate letters of the IRC paper (A is the candidate, which
the papers below call g):

    f, i, o = sigma(W_k x_t + U_k h_{t-1} + b_k),   k = F, I, O
    a       = tanh(W_A x_t + U_A h_{t-1} + b_A)
    c_t     = f * c_{t-1} + i * a
    h_t     = o * tanh(c_t)

``W_k`` is (M, N), ``U_k`` (M, M), ``b_k`` (M,). The papers stack the four gates into one W_x, W_h
and b in the order f, i, o, g; here each gate is a matrix of its own, and so are the gains and
shifts: ``gamma_h_F`` is the F block of the stacked gamma_h.

Left open by the papers:
    * h_0 = c_0 = 0 in all four.
    * Layer normalisation: the paper has no epsilon; it is added to the variance, 1e-5. The mean and
      variance are taken over all four gates at once (D = 4M), because the paper normalises the
      stacked vector. The paper's sentence on initial values calls alpha additive and beta
      multiplicative; its equation has alpha as the gain, and that is what is done. Gains missing
      from the weights are 1, shifts 0. beta_1, beta_2 and b are three names for one sum.
    * Batch normalisation: the variance is the biased one (divided by B), both for normalising and
      for storing. The paper stores population statistics; here they are moving averages,
      stored <- (1 - momentum) stored + momentum batch, momentum 0.1, from mean 0 and variance 1.
      The paper fixes the shifts beta_h and beta_x to zero and keeps b; the authors' code keeps
      beta_h and no b. These are one thing; it is called b_k here, initially 1 for F and 0 for the
      others. Training steps past the last stored one use their batch statistics and store nothing.
    * Zoneout: the hidden state is mixed from o * tanh(new cell *before* zoneout), as the paper
      prints it. The output is the state after zoneout.
    * Recurrent dropout: the paper multiplies by a 0/1 mask in training and by 1 - p otherwise;
      ``inverted`` moves the factor into training, as torch.nn.Dropout does. One mask per step, or
      one for the whole sequence: the shape of the mask says which. The paper prefers one per step.
"""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

GATES = ("F", "I", "O", "A")


def lstm_layer_norm(
    weights: dict[str, Array],
    x: Array,
    *,
    eps: float = 1e-5,
    state: dict[str, Array] | None = None,
) -> tuple[Array, dict[str, Array], dict[str, Array]]:
    r"""Layer-normalised LSTM. Ba et al. (2016), arXiv:1607.06450, supplementary material.

    .. math::
        (f, i, o, g) &= LN(W_h h_{t-1}; \alpha_1, \beta_1) + LN(W_x x_t; \alpha_2, \beta_2) + b \\
        c_t &= \sigma(f) \odot c_{t-1} + \sigma(i) \odot \tanh(g) \\
        h_t &= \sigma(o) \odot \tanh(LN(c_t; \alpha_3, \beta_3)) \\
        LN(z; \alpha, \beta) &= \alpha \odot (z - \mu) / \sqrt{s^2 + \epsilon} + \beta

    The cell that is carried on is c_t itself, not its normalised form.

    Args:
        weights: those above; optionally ``alpha_1_k, beta_1_k, alpha_2_k, beta_2_k`` (M,) for each
            gate k, and ``alpha_3, beta_3`` (M,).
        x: (T, N).
        eps: added to the variance.
        state: ``h``, ``c`` (M,) to start from.

    Returns:
        h (T, M); the final ``h`` and ``c``; and per step ``f``, ``i``, ``o``, ``a`` after their
        activations, and ``c``.
    """
    M = weights["U_F"].shape[0]
    start = {"h": np.zeros(M), "c": np.zeros(M)} | (state or {})
    h, c = start["h"], start["c"]

    def standard(z: Array) -> Array:
        mu = np.sum(z) / z.size
        return np.asarray((z - mu) / np.sqrt(np.sum((z - mu) ** 2) / z.size + eps))

    def gain(name: str) -> Array:
        return weights.get(name, np.ones(M))

    def shift(name: str) -> Array:
        return weights.get(name, np.zeros(M))

    hs: list[Array] = []
    steps: dict[str, list[Array]] = {k: [] for k in "fioac"}
    for t in range(x.shape[0]):
        from_h = standard(np.concatenate([weights[f"U_{k}"] @ h for k in GATES])).reshape(4, M)
        from_x = standard(np.concatenate([weights[f"W_{k}"] @ x[t] for k in GATES])).reshape(4, M)
        pre = {}
        for row, k in enumerate(GATES):
            pre[k] = from_h[row] * gain(f"alpha_1_{k}") + shift(f"beta_1_{k}")
            pre[k] = pre[k] + from_x[row] * gain(f"alpha_2_{k}") + shift(f"beta_2_{k}")
            pre[k] = pre[k] + weights[f"b_{k}"]
        f, i, o, a = _sigma(pre["F"]), _sigma(pre["I"]), _sigma(pre["O"]), np.tanh(pre["A"])
        c = f * c + i * a
        h = o * np.tanh(standard(c) * gain("alpha_3") + shift("beta_3"))
        hs.append(h)
        for name, value in zip("fioac", (f, i, o, a, c), strict=True):
            steps[name].append(value)
    return np.array(hs), {"h": h, "c": c}, {k: np.array(s) for k, s in steps.items()}


def lstm_batch_norm(
    weights: dict[str, Array],
    x: Array,
    *,
    training: bool = True,
    stored: dict[str, Array] | None = None,
    momentum: float = 0.1,
    eps: float = 1e-5,
    state: dict[str, Array] | None = None,
) -> tuple[Array, dict[str, Array], dict[str, Array]]:
    r"""Recurrent batch normalisation. Cooijmans et al. (2016), arXiv:1603.09025, (6)-(8).

    .. math::
        (f, i, o, g) &= BN(W_h h_{t-1}; \gamma_h, 0) + BN(W_x x_t; \gamma_x, 0) + b \\
        c_t &= \sigma(f) \odot c_{t-1} + \sigma(i) \odot \tanh(g) \\
        h_t &= \sigma(o) \odot \tanh(BN(c_t; \gamma_c, \beta_c)) \\
        BN(z; \gamma, \beta) &= \beta + \gamma \odot (z - E z) / \sqrt{Var z + \epsilon}

    E and Var run over the batch, separately for each unit and each time step. In training they are
    the batch's own; otherwise they are the stored ones of that step, and past the last stored step
    T_max those of T_max.

    Args:
        weights: those above; ``gamma_h_k, gamma_x_k`` (M,) for each gate k; ``gamma_c, beta_c``
            (M,). The paper starts every gamma at 0.1.
        x: (T, B, N): one batch, since the statistics need one.
        training: normalise by the batch.
        stored: ``mean_h_k, var_h_k, mean_x_k, var_x_k, mean_c, var_c``, each (T_max, M). Needed
            when not training; in training ``None`` means zeros and ones for T steps.
        momentum: weight of the batch in the moving average.
        eps: added to the variance.
        state: ``h``, ``c`` (B, M) to start from.

    Returns:
        h (T, B, M); the final ``h`` and ``c``; and per step ``f``, ``i``, ``o``, ``a``, ``c``
        (T, B, M), the statistics that were used under their names in ``stored`` (T, M), and the
        statistics to store next as ``stored_<name>`` (T_max, M).
    """
    T, B, _ = x.shape
    M = weights["U_F"].shape[0]
    start = {"h": np.zeros((B, M)), "c": np.zeros((B, M))} | (state or {})
    h, c = start["h"], start["c"]
    sites = [f"{kind}_{k}" for kind in ("h", "x") for k in GATES] + ["c"]
    if stored is None:
        if not training:
            raise ValueError("Outside training, batch normalisation needs stored statistics.")
        stored = {f"mean_{s}": np.zeros((T, M)) for s in sites}
        stored |= {f"var_{s}": np.ones((T, M)) for s in sites}
    store = {name: values.copy() for name, values in stored.items()}
    T_max = store["mean_c"].shape[0]
    used: dict[str, list[Array]] = {name: [] for name in store}

    def standard(site: str, z: Array, t: int) -> Array:
        if training:
            mean = np.sum(z, axis=0) / B
            var = np.sum((z - mean) ** 2, axis=0) / B
            if t < T_max:
                for name, value in ((f"mean_{site}", mean), (f"var_{site}", var)):
                    store[name][t] = (1 - momentum) * store[name][t] + momentum * value
        else:
            mean = store[f"mean_{site}"][min(t, T_max - 1)]
            var = store[f"var_{site}"][min(t, T_max - 1)]
        used[f"mean_{site}"].append(mean)
        used[f"var_{site}"].append(var)
        return np.asarray((z - mean) / np.sqrt(var + eps))

    hs: list[Array] = []
    steps: dict[str, list[Array]] = {k: [] for k in "fioac"}
    for t in range(T):
        pre = {}
        for k in GATES:
            from_h = np.array([weights[f"U_{k}"] @ h[n] for n in range(B)])
            from_x = np.array([weights[f"W_{k}"] @ x[t, n] for n in range(B)])
            pre[k] = weights[f"gamma_h_{k}"] * standard(f"h_{k}", from_h, t)
            pre[k] = pre[k] + weights[f"gamma_x_{k}"] * standard(f"x_{k}", from_x, t)
            pre[k] = pre[k] + weights[f"b_{k}"]
        f, i, o, a = _sigma(pre["F"]), _sigma(pre["I"]), _sigma(pre["O"]), np.tanh(pre["A"])
        c = f * c + i * a
        h = o * np.tanh(weights["gamma_c"] * standard("c", c, t) + weights["beta_c"])
        hs.append(h)
        for name, value in zip("fioac", (f, i, o, a, c), strict=True):
            steps[name].append(value)
    per_step = {k: np.array(s) for k, s in (steps | used).items()}
    per_step |= {f"stored_{name}": values for name, values in store.items()}
    return np.array(hs), {"h": h, "c": c}, per_step


def zoneout(
    weights: dict[str, Array],
    x: Array,
    *,
    training: bool = True,
    d_c: Array | None = None,
    d_h: Array | None = None,
    z_c: float = 0.0,
    z_h: float = 0.0,
    state: dict[str, Array] | None = None,
) -> tuple[Array, dict[str, Array], dict[str, Array]]:
    r"""LSTM with zoneout. Krueger et al. (2017), arXiv:1606.01305, section 3.

    .. math::
        c_t &= d^c_t \odot c_{t-1} + (1 - d^c_t) \odot (f_t \odot c_{t-1} + i_t \odot a_t) \\
        h_t &= d^h_t \odot h_{t-1} + (1 - d^h_t) \odot
               (o_t \odot \tanh(f_t \odot c_{t-1} + i_t \odot a_t))

    Args:
        weights: those above.
        x: (T, N).
        training: use the masks; otherwise use their expectations z_c and z_h.
        d_c, d_h: (T, M), one where the old value is kept; needed in training.
        z_c, z_h: probabilities that a unit keeps its old value; used outside training.
        state: ``h``, ``c`` (M,) to start from.

    Returns:
        h (T, M); the final ``h`` and ``c``; and per step ``f``, ``i``, ``o``, ``a``, ``c``.
    """
    T, M = x.shape[0], weights["U_F"].shape[0]
    if not training:
        d_c, d_h = np.full((T, M), z_c), np.full((T, M), z_h)
    if d_c is None or d_h is None:
        raise ValueError("In training, zoneout needs both masks: d_c and d_h.")
    start = {"h": np.zeros(M), "c": np.zeros(M)} | (state or {})
    h, c = start["h"], start["c"]
    hs: list[Array] = []
    steps: dict[str, list[Array]] = {k: [] for k in "fioac"}
    for t in range(T):
        pre = {
            k: weights[f"W_{k}"] @ x[t] + weights[f"U_{k}"] @ h + weights[f"b_{k}"] for k in GATES
        }
        f, i, o, a = _sigma(pre["F"]), _sigma(pre["I"]), _sigma(pre["O"]), np.tanh(pre["A"])
        new_c = f * c + i * a
        c = d_c[t] * c + (1 - d_c[t]) * new_c
        h = d_h[t] * h + (1 - d_h[t]) * (o * np.tanh(new_c))
        hs.append(h)
        for name, value in zip("fioac", (f, i, o, a, c), strict=True):
            steps[name].append(value)
    return np.array(hs), {"h": h, "c": c}, {k: np.array(s) for k, s in steps.items()}


def recurrent_dropout(
    weights: dict[str, Array],
    x: Array,
    *,
    training: bool = True,
    mask: Array | None = None,
    p: float = 0.0,
    inverted: bool = False,
    state: dict[str, Array] | None = None,
) -> tuple[Array, dict[str, Array], dict[str, Array]]:
    r"""LSTM with dropout on the candidate only. Semeniuta et al. (2016), arXiv:1603.05118.

    .. math::
        c_t &= f_t \odot c_{t-1} + i_t \odot d(a_t) \\
        d(a) &= m \odot a \text{ in training}, \; (1 - p) \, a \text{ otherwise}

    so what the cell already holds is never dropped.

    Args:
        weights: those above.
        x: (T, N).
        training: use the mask.
        mask: (T, M), one per step, or (M,), one for the sequence; zeros and ones, zero where the
            candidate is dropped; needed in training.
        p: probability that a unit is dropped.
        inverted: divide by 1 - p in training and leave the candidate alone otherwise.
        state: ``h``, ``c`` (M,) to start from.

    Returns:
        h (T, M); the final ``h`` and ``c``; and per step ``f``, ``i``, ``o``, ``a`` (before
        dropout), ``c``.
    """
    T, M = x.shape[0], weights["U_F"].shape[0]
    if training:
        if mask is None:
            raise ValueError("In training, recurrent dropout needs a mask.")
        factor = np.broadcast_to(mask, (T, M)) / ((1 - p) if inverted else 1.0)
    else:
        factor = np.full((T, M), 1.0 if inverted else 1 - p)
    start = {"h": np.zeros(M), "c": np.zeros(M)} | (state or {})
    h, c = start["h"], start["c"]
    hs: list[Array] = []
    steps: dict[str, list[Array]] = {k: [] for k in "fioac"}
    for t in range(T):
        pre = {
            k: weights[f"W_{k}"] @ x[t] + weights[f"U_{k}"] @ h + weights[f"b_{k}"] for k in GATES
        }
        f, i, o, a = _sigma(pre["F"]), _sigma(pre["I"]), _sigma(pre["O"]), np.tanh(pre["A"])
        c = f * c + i * (factor[t] * a)
        h = o * np.tanh(c)
        hs.append(h)
        for name, value in zip("fioac", (f, i, o, a, c), strict=True):
            steps[name].append(value)
    return np.array(hs), {"h": h, "c": c}, {k: np.array(s) for k, s in steps.items()}


def _sigma(z: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * z)))
