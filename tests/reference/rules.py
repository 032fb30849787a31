r"""Learned optimisers, one learner at a time: from its parameters and gradient to its next ones.

Every function takes ``weights``, the parameters ``theta`` (N,), their gradient ``g`` (N,) and a
state, ``None`` before the first step, and returns the next parameters and state. What is
coordinate-wise goes through the coordinates one after the other.

Left open by the papers:
    * A hidden state is read out by a linear layer, w . h + b for an update or a rate; U_beta h of
      DMSGD (5.16) has no bias.
    * The recurrent network of DMSGD (5.17) reads the preprocessed gradient, and its LSTM is the
      LSTM-optimiser's.
    * The two layer normalisations of the DecayNet paper (appendix D) have the gain and shift of Ba
      et al. (2016), run over the four gates together, and have 1e-5 under the root. The sentence
      about them is cut in the copy at hand after the product W x; W_R q is what is left.
    * MTL2L's fixed matrices are square, so the pair of numbers of a gradient is lifted to their
      size by a matrix (released code). Each gate has a pair of orthogonal matrices of its own,
      while the gates of a layer share the eigenvalues. The hypernetwork's output is averaged over
      the batch of images.
    * The hierarchical optimiser's upper networks are added to the biases of r, z and the candidate,
      in this order; its first averages are the first gradient and its square (released code).
    * sgn(0) is 0 in the mask (5.19): a rate that equals the threshold is removed.

References:
    Andrychowicz et al. (2016), Learning to learn by gradient descent by gradient descent.
    Wichrowska et al. (2017), Learned Optimizers that Scale and Generalize, section 3.
    Lv et al. (2017), Learning Gradient Descent: Better Generalization and Longer Horizons.
    Kuo et al. (2018), DecayNet, section 6.2, appendices D and E.
    Kuo et al. (2020), An Input Residual Connection, section V-C.
    Kuo et al. (2020), MTL2L: A Context Aware Neural Optimiser.
    Kuo (2021), thesis, sections 3.2.5, 4.1.6.2, 5.1.4 and 5.2.3.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from reference import decaynet, gru, ihc_lstm, lstm
from reference.maths import relu, sigmoid
from reference.result import Array

Weights = dict[str, Any]
Step = tuple[Array, Any]


def preprocess(g: Array, p: float = 10.0) -> Array:
    """(log|g| / p, sgn g) where |g| >= e^-p, and (-1, e^p g) elsewhere: (N, 2)."""
    pairs = []
    for value in g.tolist():
        if abs(value) >= math.exp(-p):
            pairs.append((math.log(abs(value)) / p, math.copysign(1.0, value)))
        else:
            pairs.append((-1.0, math.exp(p) * value))
    return np.array(pairs)


def layers(run: Callable[..., Any], weights: list[Weights], x: Array, states: Any) -> Any:
    """The last layer's outputs over x (T, I), and the state of every layer."""
    after = []
    for one, state in zip(weights, states or [None] * len(weights), strict=True):
        x, end, _ = run(one, x, state=state)
        after.append(end)
    return x, after


def coordinates(run: Callable[..., Any], weights: Weights, g: Array, state: Any) -> Any:
    """The hidden states (N, H) of a network for each coordinate, after one more gradient."""
    hidden, after = [], []
    for n, pair in enumerate(preprocess(g, weights.get("p", 10.0))):
        h, end = layers(run, weights["layers"], pair[None], None if state is None else state[n])
        hidden.append(h[-1])
        after.append(end)
    return np.array(hidden), after


def lstm_optimiser(weights: Weights, theta: Array, g: Array, state: Any = None) -> Step:
    """(3.12), (3.13) and 3.2.5.5: two LSTM layers, a linear one, times 0.1."""
    h, state = coordinates(lstm.run, weights, g, state)
    return theta + weights.get("scale", 0.1) * (h @ weights["w"] + weights["b"]), state


def ihc_lstm_optimiser(weights: Weights, theta: Array, g: Array, state: Any = None) -> Step:
    """Section V-C: the IHC-LSTM where the LSTM was."""
    h, state = coordinates(ihc_lstm.run, weights, g, state)
    return theta + weights.get("scale", 0.1) * (h @ weights["w"] + weights["b"]), state


def decaynet_optimiser(
    weights: Weights, theta: Array, g: Array, state: Any = None, *, n: int = 2
) -> Step:
    """(4.1)-(4.3): n internal steps on the same gradient from p = pi/2, then a learning rate."""
    rates, after = [], []
    for row, pair in enumerate(preprocess(g, weights.get("p", 10.0))):
        start = None
        if state is not None:
            start = [{"h": one["h"], "c": one["c"]} for one in state[row]]  # p starts anew

        def run(one: Weights, x: Array, state: Any) -> Any:
            return decaynet.run(one, x, D=n, state=state)

        h, end = layers(run, weights["layers"], np.tile(pair, (n, 1)), start)
        rates.append(float(h[-1] @ weights["w"] + weights["b"]))
        after.append(end)
    return theta - np.array(rates) * g, after


def global_optimiser(
    weights: Weights,
    theta: Array,
    g: Array,
    state: Any = None,
    *,
    n: int = 2,
    decays: bool = True,
) -> Step:
    """Appendices D and E: one network for all parameters, from theta * G to a rate for each.

    Args:
        weights: ``down`` (28, N), ``up`` (N, 64); ``W`` (4, 64, 28) and ``U`` (4, 64, 64) in the
            order f, i, o, a; ``b`` (4, 64); ``gain_W``, ``shift_W``, ``gain_U``, ``shift_U`` (4,
            64).
        n: internal iterations.
        decays: DecayNet; its rival, the LSTM, otherwise.
    """
    units = weights["b"].shape[1]
    q = np.zeros(units) if state is None else state["q"]
    s = np.zeros(units) if state is None else state["s"]
    p = np.full(units, np.pi / 2)
    G = preprocess(g, weights.get("p", 10.0)).prod(1)
    x = weights["down"] @ (theta * G)
    for _ in range(n):
        from_x = _normal(weights["W"] @ x) * weights["gain_W"] + weights["shift_W"]
        from_q = _normal(weights["U"] @ q) * weights["gain_U"] + weights["shift_U"]
        fall, i, o, a = from_x + from_q + weights["b"]
        if decays:
            p = p - np.pi / (2 * n) * (fall + 3) / 6
            f = np.where(p > np.pi / 2, 1.0, np.where(p < 0, 0.0, np.sin(p)))
        else:
            f = sigmoid(fall)
        s = f * s + sigmoid(i) * np.tanh(a)
        q = sigmoid(o) * np.tanh(s)
    return theta - (weights["up"] @ q) * g, {"q": q, "s": s}


def _normal(z: Array) -> Array:
    centred = z - z.sum() / z.size
    return np.asarray(centred / np.sqrt((centred**2).sum() / z.size + 1e-5))


def mtl2l(
    weights: Weights,
    theta: Array,
    g: Array,
    state: Any = None,
    *,
    images: Array,
    stable: bool,
) -> Step:
    """(9)-(17): an LSTM whose synapses have the eigenvalues that the images call for.

    Args:
        weights: ``lift`` (H, 2); ``layers``, each with ``Q P S J`` (4, H, H) and ``b`` (4, H) in
            the order f, i, o, a, and two hypernetworks ``N1`` and ``N2``; ``w`` (H,) and ``b``.
        images: (B, pixels), what the learner was shown.
        stable: average the eigenvalues over time (17).
    """
    after: Any = {"N": [], "coordinates": []}
    synapses = []
    for number, layer in enumerate(weights["layers"]):
        found = {}
        for name in ("N1", "N2"):
            seen = np.mean([_hypernetwork(layer[name], image) for image in images], axis=0)
            if stable:
                before = np.zeros_like(seen) if state is None else state["N"][number][name]
                seen = 0.9 * before + 0.1 * seen
            found[name] = seen
        after["N"].append(found)
        W = [layer["Q"][k] @ np.diag(found["N1"]) @ layer["P"][k].T for k in range(4)]
        U = [layer["S"][k] @ np.diag(found["N2"]) @ layer["J"][k].T for k in range(4)]
        synapses.append((W, U, layer["b"]))
    steps = []
    for n, pair in enumerate(preprocess(g, weights.get("p", 10.0))):
        x, ends = weights["lift"] @ pair, []
        for number, (W, U, b) in enumerate(synapses):
            zero = np.zeros(len(x))
            h, c = (zero, zero) if state is None else state["coordinates"][n][number]
            f, i, o = (sigmoid(W[k] @ x + U[k] @ h + b[k]) for k in range(3))
            a = np.tanh(W[3] @ x + U[3] @ h + b[3])
            c = f * c + i * a
            x = o * np.tanh(c)
            ends.append((x, c))
        steps.append(weights.get("scale", 0.1) * float(weights["w"] @ x + weights["b"]))
        after["coordinates"].append(ends)
    return theta + np.array(steps), after


def _hypernetwork(N: Weights, image: Array) -> Array:
    """Two linear layers with a ReLU between them; eigenvalues may be negative."""
    return np.asarray(N["W2"] @ relu(N["W1"] @ image + N["b1"]) + N["b2"])


def meta_sgd(weights: Weights, theta: Array, g: Array, state: Any = None) -> Step:
    """(5.11)"""
    return theta - weights["beta"] * g, None


def dmsgd_rates(weights: Weights, g: Array, state: Any) -> Step:
    """(5.15)-(5.17)"""
    h, state = coordinates(lstm.run, weights, g, state)
    dynamic = np.tanh(h @ weights["U_beta"])
    return relu(weights["beta_sta"] + weights.get("gamma", 1.0) * dynamic), state


def dmsgd(weights: Weights, theta: Array, g: Array, state: Any = None) -> Step:
    """(5.14)"""
    beta, state = dmsgd_rates(weights, g, state)
    return theta + beta * -g, state


def m2sgd(weights: Weights, theta: Array, g: Array, state: Any = None, *, threshold: float) -> Step:
    """(5.18) and (5.19), after DMSGD."""
    beta, _ = dmsgd_rates(weights, g, state)
    theta, state = dmsgd(weights, theta, g, state)
    return theta * np.maximum(0.0, np.sign(beta - threshold)), state


def m2sgd_global(
    weights: Weights, theta: Array, g: Array, state: Any = None, *, threshold: float
) -> Step:
    """The released script: five numbers of each parameter, to one LSTM, to all rates.

    Args:
        weights: ``down`` (H, N) and ``b_down`` (H,), ``mix`` (5,) and ``b_mix``, ``layer``,
            ``up`` (N, H) and ``b_up`` (N,), ``beta_sta`` (N,), ``p``.
        threshold: a rate that is not above it removes its parameter.
    """
    pairs = preprocess(g, weights["p"])
    rows = [pairs[:, 0], pairs[:, 1], theta, g, relu(weights["beta_sta"])]
    reduced = [weights["down"] @ row + weights["b_down"] for row in rows]
    x = sum(m * row for m, row in zip(weights["mix"], reduced, strict=True)) + weights["b_mix"]
    h, state, _ = lstm.run(weights["layer"], np.asarray(x)[None], state=state)
    beta = relu(weights["beta_sta"] + np.tanh(weights["up"] @ h[-1] + weights["b_up"]))
    return (theta - beta * g) * np.maximum(0.0, np.sign(beta - threshold)), state


def elu(x: Array) -> Array:
    return np.array([value if value > 0 else math.expm1(value) for value in x.tolist()])


def rnnprop(weights: Weights, theta: Array, g: Array, state: Any = None) -> Step:
    """Lv et al., equations 4 to 7: Adam's two ratios, a layer of ELU, LSTMs, and a bounded step.

    The averages are sums over all gradients so far, each with what is left of its share.
    """
    gradients, hidden = state or ([], [None] * len(theta))
    gradients = [*gradients, g]

    def mean(values: list[Array], memory: float) -> Array:
        share = np.array([memory ** (len(values) - 1 - i) for i in range(len(values))])
        return np.tensordot(share / share.sum(), np.array(values), 1)

    beta1, beta2 = weights["beta"]
    root = np.sqrt(mean([one**2 for one in gradients], beta2) + 1e-14)
    pairs = np.stack([g / root, mean(gradients, beta1) / root], axis=1)
    steps, after = [], []
    for pair, before in zip(pairs, hidden, strict=True):
        x = elu(weights["A"] @ pair + weights["a"])
        h, end = layers(lstm.run, weights["layers"], x[None], before)
        steps.append(weights["alpha"] * math.tanh(h[-1] @ weights["w"] + weights["b"]))
        after.append(end)
    return theta - np.array(steps), (gradients, after)


def biased(weights: Weights, more: Array) -> Weights:
    """A GRU's weights with more added to the biases of r, z and the candidate."""
    added = np.split(more, 3)
    return weights | {f"b_{g}": weights[f"b_{g}"] + b for g, b in zip("rzh", added, strict=True)}


def hierarchical(
    weights: Weights, theta: Array, g: Array, state: Any = None, *, tensors: tuple[int, ...]
) -> Step:
    """Wichrowska et al., section 3: GRUs of coordinates, of tensors and of the network.

    Args:
        weights: ``cells``, ``starts``, pairs (matrix, bias) ``A``, ``B``, ``C``, ``u``, ``beta``
            and ``lambda``, ``w`` (H,), ``q`` (S,), ``gamma``, ``c``, ``rate``.
        tensors: how many of the coordinates each has.
    """
    scales, (low, middle, top) = len(weights["q"]), weights["cells"]
    if state is None:
        h0, tensor0, network0 = weights["starts"]
        nothing = np.zeros(scales)
        one = {"h": h0, "m": nothing, "v": nothing, "beta": 0.0, "lambda": 0.0}
        each = [one | {"eta": math.log(weights["rate"])} for _ in theta]
        state = (each, [tensor0] * len(tensors), network0)
    each, H, G = state

    def affine(name: str, vector: Array) -> Any:
        matrix, bias = weights[name]
        return matrix @ vector + bias

    mean_rate = sum(one["eta"] for one in each) / len(each)
    moved, after, seen, first = [], [], [], 0
    for count, of_tensor in zip(tensors, H, strict=True):
        bias = affine("A", of_tensor) + affine("B", G)
        directions, rates, inputs = [], [], []
        for one, slope in zip(each[first : first + count], g[first : first + count], strict=True):
            m, v = one["m"].copy(), one["v"].copy()
            for s in range(scales):
                decay = one["beta"] ** (1 / 2**s)
                m[s] = decay * m[s] + (1 - decay) * slope
                v[s] = one["lambda"] * v[s] + (1 - one["lambda"]) * m[s] ** 2
            mu, logs = m / np.sqrt(v + 1e-16), np.log(v + 1e-16)
            products = [mu[s] * mu[s + 1] for s in range(scales - 1)]
            x = np.concatenate([mu, products, logs - logs.mean(), [one["eta"] - mean_rate]])
            h = gru.run(biased(low, bias), x[None], state={"h": one["h"]})[0][-1]
            rate = min(max(one["eta"] + affine("u", h)[0], -33.0), 33.0)
            directions.append(weights["w"] @ h + weights["q"] @ mu)
            rates.append(rate)
            inputs.append(np.concatenate([h, x]))
            eta = weights["gamma"] * one["eta"] + (1 - weights["gamma"]) * rate
            decays = {name: sigmoid(affine(name, h)[0]) for name in ("beta", "lambda")}
            after.append({"h": h, "m": m, "v": v, "eta": eta} | decays)
        d = np.array(directions)
        moved.append(np.exp(np.array(rates) + weights["c"]) * d / np.sqrt((d**2).mean() + 1e-16))
        seen.append(np.mean(inputs, axis=0))
        first += count
    over = biased(middle, affine("C", G))
    pairs = zip(seen, H, strict=True)
    H = [gru.run(over, x[None], state={"h": old})[0][-1] for x, old in pairs]
    G = gru.run(top, np.mean(H, axis=0)[None], state={"h": G})[0][-1]
    return theta - np.concatenate(moved), (after, H, G)


def anytime(
    weights: Weights,
    theta: Array,
    g: Array,
    state: Any = None,
    *,
    tensors: tuple[tuple[int, int | None], ...],
    lr: float = 1.0,
) -> Step:
    """Anytime, with its fast iterate z and their average x in full, and all gradients so far.

    Args:
        tensors: how many of the coordinates each tensor has, and how many inputs its units sum.
        lr: multiplies what the fast iterate moves by.
    """
    sizes: list[float] = []
    for count, inputs in tensors:
        spread = 0.1 if inputs is None else 1 / math.sqrt(3 * inputs)
        sizes += [min(max(spread, 0.01), 0.1) / 0.1] * count
    gradients, z, x, size = state or ([], theta, theta, np.array(sizes))
    gradients = [*gradients, g]
    t = len(gradients)

    def mean(values: list[Array], memory: float) -> Array:
        share = np.array([memory ** (t - 1 - i) for i in range(t)])
        return np.tensordot(share / share.sum(), np.array(values), 1)

    mu, nu, rho = weights["memory"]
    root = np.sqrt(mean([one**2 for one in gradients], rho) + 1e-14)
    s = [g / root, mean(gradients, mu) / root, mean(gradients, nu) / root]
    d = sum(w * one for w, one in zip(weights["w"], s, strict=True))
    d = d * np.sqrt(s[2] ** 2 + 1e-4) ** weights["a"] * np.exp(weights["b"] * np.tanh(s[0] * s[2]))
    rate = weights["gamma"] / (1 + t / weights["tau"]) ** weights["p"]
    z = z - lr * rate * (size ** weights["e"] * d + weights["delta"] * theta)
    c = weights["kappa"] / (t - 1 + weights["kappa"])
    x = (1 - c) * x + c * z
    return (1 - weights["beta"]) * z + weights["beta"] * x, (gradients, z, x, size)
