r"""Strategies of continual learning, from batches to the weights with which the last task ends.

Every function takes a `Perceptron`, its weights ``theta``, a list of tasks, each a list of batches,
a rate, and the settings of the strategy; it returns the weights after the last update. Where a
memory is drawn from at random, the settings make it so small that all of it is drawn.

Left open by the papers:
    * GEM: each squared length of an earlier gradient is raised by 1e-5 of itself, as the
      documentation of the strategy says; the first samples of a task are kept.
    * HAT: the clamps (6 for embeddings, 50 for the argument of the hyperbolic cosine) are those of
      the released code. The output layer is not protected.
    * MetaSGD-CL: the meta-gradient is clamped to plus or minus 1 (released code).
    * The Fisher information is the empirical one, of all training samples.

References:
    McCloskey and Cohen (1989); Caruana (1997); Chaudhry et al. (2019), On tiny episodic memories,
    and Efficient lifelong learning with A-GEM, equation 11; Lopez-Paz and Ranzato (2017), equations
    8 to 13; Kirkpatrick et al. (2017), equation 3; Schwarz et al. (2018), section 3.2; Serrà et al.
    (2018), equations 1 to 6; Mirzadeh et al. (2020), section 4; Kuo (2021), thesis, 6.1 and 6.2.
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from reference import strategies_more as more
from reference.maths import sigmoid
from reference.perceptron import Batch, Perceptron
from reference.result import Array

Tasks = Sequence[Sequence[Batch]]


def naive(net: Perceptron, theta: Array, tasks: Tasks, rate: float) -> Array:
    for batches in tasks:
        for batch in batches:
            theta = theta - rate * net.mean(theta, batch)
    return theta


def stable(
    net: Perceptron, theta: Array, tasks: Tasks, rate: float, *, gamma: float, least: float
) -> Array:
    for place, batches in enumerate(tasks):
        for batch in batches:
            theta = theta - max(rate * gamma**place, least) * net.mean(theta, batch)
    return theta


def freeze(net: Perceptron, theta: Array, tasks: Tasks, rate: float, *, after: int) -> Array:
    """Only the first layer goes on learning."""
    first = net.sizes[1] * (net.sizes[0] + 1)
    for place, batches in enumerate(tasks):
        for batch in batches:
            g = net.mean(theta, batch)
            if place >= after:
                g[first:] = 0
            theta = theta - rate * g
    return theta


def _first(batches: Sequence[Batch], size: int) -> Batch:
    return [sample for batch in batches for sample in batch][:size]


def _balanced(net: Perceptron, theta: Array, new: Batch, old: Sequence[Batch]) -> Array:
    g = net.mean(theta, new)
    for some in old:
        g = g + net.mean(theta, some) / len(old)
    return g


def er(
    net: Perceptron,
    theta: Array,
    tasks: Tasks,
    rate: float,
    *,
    size: int,
    balanced: bool,
    **_: Any,
) -> Array:
    for place, batches in enumerate(tasks):
        old = [_first(earlier, size) for earlier in tasks[:place]]
        for batch in batches:
            if balanced:
                g = _balanced(net, theta, batch, old)
            else:
                g = net.mean(theta, [*batch, *(sample for some in old for sample in some)])
            theta = theta - rate * g
    return theta


def joint(
    net: Perceptron,
    theta: Array,
    tasks: Tasks,
    rate: float,
    *,
    balanced: bool,
    draw: Callable[[int, int], Sequence[int]],
) -> Array:
    """``draw(task, count)`` says which of a task's samples come next."""
    for place, batches in enumerate(tasks):
        every = [_first(earlier, 10**9) for earlier in tasks[:place]]
        for batch in batches:
            old = [[some[i] for i in draw(u, len(batch))] for u, some in enumerate(every)]
            if balanced:
                g = _balanced(net, theta, batch, old)
            else:
                g = net.mean(theta, [*batch, *(sample for some in old for sample in some)])
            theta = theta - rate * g
    return theta


def _multipliers(P: Array, q: Array, margin: float) -> Array:
    """The least v'Pv/2 + q'v with v >= margin: try which of them are at the margin."""
    best, least = np.full(len(q), margin), np.inf
    for free in product([False, True], repeat=len(q)):
        v = np.full(len(q), margin)
        some = np.flatnonzero(free)
        rest = np.flatnonzero(~np.array(free))
        if len(some):
            right = -q[some] - P[np.ix_(some, rest)] @ v[rest]
            v[some] = np.linalg.solve(P[np.ix_(some, some)], right)
        value = float(v @ P @ v / 2 + q @ v)
        if (v >= margin - 1e-12).all() and value < least:
            best, least = v, value
    return best


def gem(
    net: Perceptron,
    theta: Array,
    tasks: Tasks,
    rate: float,
    *,
    size: int,
    margin: float,
) -> Array:
    for place, batches in enumerate(tasks):
        old = [_first(earlier, size) for earlier in tasks[:place]]
        for batch in batches:
            g = net.mean(theta, batch)
            G = np.array([net.mean(theta, some) for some in old]).reshape(place, len(g))
            if (G @ g < 0).any():
                P = G @ G.T
                v = _multipliers(P + 1e-5 * np.diag(np.diag(P)), G @ g, margin)
                g = g + G.T @ v
            theta = theta - rate * g
    return theta


def agem(
    net: Perceptron, theta: Array, tasks: Tasks, rate: float, *, per_class: int, **_: Any
) -> Array:
    memory: list[tuple[Array, int]] = []
    for batches in tasks:
        for batch in batches:
            g = net.mean(theta, batch)
            if memory:
                r = net.mean(theta, memory)
                if g @ r < 0:
                    g = g - (g @ r) / (r @ r) * r
            theta = theta - rate * g
        seen = _first(batches, 10**9)
        for label in sorted({y for _, y in seen}):
            memory += [sample for sample in seen if sample[1] == label][-per_class:]
    return theta


def ewc(
    net: Perceptron,
    theta: Array,
    tasks: Tasks,
    rate: float,
    *,
    strength: float,
    decay: float,
    **_: Any,
) -> Array:
    penalties: list[tuple[Array, Array]] = []
    for batches in tasks:
        for batch in batches:
            g = net.mean(theta, batch)
            for age, (fisher, centre) in enumerate(reversed(penalties)):
                g = g + strength * decay**age * fisher * (theta - centre)
            theta = theta - rate * g
        penalties.append((net.squares(theta, _first(batches, 10**9)), theta))
    return theta


def online_ewc(
    net: Perceptron,
    theta: Array,
    tasks: Tasks,
    rate: float,
    *,
    strength: float,
    decay: float,
    **_: Any,
) -> Array:
    fisher, centre = np.zeros_like(theta), theta
    for batches in tasks:
        for batch in batches:
            g = net.mean(theta, batch) + strength * decay * fisher * (theta - centre)
            theta = theta - rate * g
        fisher = decay * fisher + net.squares(theta, _first(batches, 10**9))
        centre = theta
    return theta


def hat(
    net: Perceptron,
    theta: Array,
    tasks: Tasks,
    rate: float,
    *,
    strength: float,
    sharpness: float,
    embeddings: Sequence[Sequence[Array]],
) -> Array:
    """``embeddings`` are those with which each task begins; each is gone through once."""
    used = [np.zeros(size) for size in net.sizes[1:-1]]
    for place, batches in enumerate(tasks):
        e = [np.array(one) for one in embeddings[place]]
        for count, batch in enumerate(batches):
            s = 1 / sharpness + (sharpness - 1 / sharpness) * count / max(1, len(batches) - 1)
            masks = [sigmoid(s * one) for one in e]
            g, of_masks = np.zeros_like(theta), [np.zeros_like(one) for one in e]
            for x, y in batch:
                found, each = net.of_one(theta, x, y, masks)
                g += found / len(batch)
                of_masks = [a + b / len(batch) for a, b in zip(of_masks, each, strict=True)]
            free = sum(float((1 - u).sum()) for u in used)
            for layer, (W, b) in enumerate(net.layers(g)[:-1]):
                below = np.ones(W.shape[1]) if layer == 0 else used[layer - 1]
                for i, j in np.ndindex(W.shape):
                    W[i, j] *= 1 - min(used[layer][i], below[j])
                b *= 1 - used[layer]
            for layer, one in enumerate(e):
                d = of_masks[layer] + strength * (1 - used[layer]) / free
                d = d * s * masks[layer] * (1 - masks[layer])
                d = d * sharpness / s * (np.cosh(np.clip(s * one, -50, 50)) + 1)
                e[layer] = np.clip(one - rate * d / (np.cosh(one) + 1), -6, 6)
            theta = theta - rate * g
        used = [np.maximum(u, sigmoid(sharpness * one)) for u, one in zip(used, e, strict=True)]
    return theta


def metasgd_cl(
    net: Perceptron,
    theta: Array,
    tasks: Tasks,
    rate: float,
    *,
    kappa: float,
    initial: float,
    meta_lr: float,
    size: int,
    **_: Any,
) -> Array:
    """Its rates are its own; the one given does not count."""
    frozen: list[Array] = []
    for place, batches in enumerate(tasks):
        b = np.full_like(theta, initial)
        m, v = np.zeros_like(b), np.zeros_like(b)
        old = [_first(earlier, size) for earlier in tasks[:place]]
        for count, batch in enumerate(batches):
            g = net.mean(theta, batch)
            after = theta - np.maximum(np.minimum(b, kappa), 0) * g
            for beta, some in zip(frozen, old, strict=True):
                after = after - beta * net.mean(theta, some) / place
            everything = [*batch, *(sample for some in old for sample in some)]
            d = -net.mean(after, everything) * g * ((b >= 0) & (b <= kappa))
            d = np.clip(d, -1, 1)
            m, v = 0.9 * m + 0.1 * d, 0.999 * v + 0.001 * d**2
            m_hat, v_hat = m / (1 - 0.9 ** (count + 1)), v / (1 - 0.999 ** (count + 1))
            b = b - meta_lr * m_hat / (np.sqrt(v_hat) + 1e-8)
            theta = after
        frozen.append(np.maximum(np.minimum(b, kappa), 0))
    return theta


REFERENCES: dict[str, Callable[..., Array]] = {
    "agem": agem,
    "der": more.der,
    "derpp": more.der,
    "er": er,
    "er_ace": more.er_ace,
    "ewc": ewc,
    "freeze": freeze,
    "gdumb": more.gdumb,
    "gem": gem,
    "hat": hat,
    "icarl": more.icarl,
    "joint": joint,
    "lwf": more.lwf,
    "mas": more.mas,
    "metasgd_cl": metasgd_cl,
    "naive": naive,
    "online_ewc": online_ewc,
    "progressive": more.progressive,
    "si": more.si,
    "slda": more.slda,
    "stable": stable,
}
"""A second implementation of every strategy."""
