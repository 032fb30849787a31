r"""Rules with a scheduler of each tensor, one learner at a time, tensor by tensor.

Functions are called as those of `reference.rules`; ``tensors`` are the tensors' shapes, and
``losses`` all losses so far.

References:
    Moudgil et al. (2025), Celo, arXiv:2501.12670; Metz et al. (2022), VeLO, arXiv:2211.09760; both
    with the constants of the released code.
"""

import math
from typing import Any

import numpy as np

from reference.maths import relu, sigmoid
from reference.result import Array
from reference.shaped import Shapes, Weights, averaged, cut, row_mean, rows_and_columns, unit

MEMORIES = (0.9, 0.99, 0.999)
PLACES = np.array([0.03, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0, 1.1])


def celo(
    weights: Weights,
    theta: Array,
    g: Array,
    state: Any = None,
    *,
    tensors: Shapes,
    losses: list[float] | None = None,
) -> tuple[Array, Any]:
    """Celo with all gradients so far, and a scheduler that sees the losses so far."""
    past = [*(state or []), np.clip(g, -1000, 1000)]
    rate = schedule(weights, (losses or [1.0] * len(past))[: len(past)])
    after = []
    for number, p in enumerate(cut(theta, tensors)):
        own = [cut(one, tensors)[number] for one in past]
        after.append(p - step(p, own, weights["layers"], rate))
    return np.concatenate([one.reshape(-1) for one in after]), past


def velo(
    weights: Weights,
    theta: Array,
    g: Array,
    state: Any = None,
    *,
    tensors: Shapes,
    losses: list[float] | None = None,
) -> tuple[Array, Any]:
    """VeLO with all gradients so far; its recurrent networks are kept from step to step."""
    before, memory = state or ([], [weights["begin"]] * len(tensors))
    past = [*before, np.clip(g, -1000, 1000)]
    (W, b), (V, c), (G, gb), (u, e), (K, f) = weights["scheduler"]
    y = history((losses or [1.0] * len(past))[: len(past)], weights["horizon"])[-1]
    told = []
    for number, p in enumerate(cut(theta, tensors)):
        own = [cut(one, tensors)[number] for one in before]
        size = math.sqrt(max(float(np.mean(p**2)), 1e-9))
        m = [averaged(own, k) / size if own else np.zeros_like(p) for k in MEMORIES]
        v = averaged([one**2 for one in own], 0.999) / size if own else np.zeros_like(p)
        about = [np.mean((one - one.mean()) ** 2) for one in m]
        odd = [np.mean((v - one.mean()) ** 2) for one in m]
        rank = [float(sum(n > 1 for n in p.shape) == k) for k in range(5)]
        told.append(np.array([*y, log(v.mean()), *rank, *map(log, about), *map(log, odd)]))
    largest = np.max([relu(V @ z + c) for z in told], axis=0)
    after, next_memory = [], []
    for number, p in enumerate(cut(theta, tensors)):
        x = W @ told[number] + b + largest
        h, cell = lstm(G @ np.concatenate([x, memory[number][0]]) + gb, memory[number][1])
        next_memory.append((h, cell))
        k = K @ h + f
        layers = [
            (
                100 * np.mean([a * w for a, w in zip(k, bank, strict=True)], axis=0).T,
                100 * np.mean([a * w for a, w in zip(k, biases, strict=True)], axis=0),
            )
            for bank, biases in weights["bank"]
        ]
        own = [cut(one, tensors)[number] for one in past]
        after.append(p - step(p, own, layers, (u @ h + e).item()))
    return np.concatenate([one.reshape(-1) for one in after]), (past, next_memory)


def step(p: Array, own: list[Array], layers: list[tuple[Array, Array]], rate: float) -> Array:
    """What a perceptron of 30 features takes from a tensor, by all of its gradients so far."""
    squares = [one**2 + 1e-30 for one in own]
    m = [averaged(own, k) for k in MEMORIES]
    v = averaged([one**2 for one in own], 0.999)
    pairs = [rows_and_columns(one) for one in squares]
    r = [np.broadcast_to(averaged([a for a, _ in pairs], k), p.shape) for k in MEMORIES]
    c = [np.broadcast_to(averaged([b for _, b in pairs], k), p.shape) for k in MEMORIES]
    if p.ndim < 2:
        f = [1 / np.sqrt(np.maximum(one + 1e-9, 1e-9)) for one in r]
        of_m = [one**-0.5 for one in r]
    else:
        f = [
            1 / np.sqrt(np.maximum(a / (row_mean(a, p.shape) + 1e-9), 1e-9) * np.maximum(b, 1e-9))
            for a, b in zip(r, c, strict=True)
        ]
        of_m = f
    now, w = own[-1], 1 / np.sqrt(v + 1e-6)
    seen = [now, np.clip(now, -0.1, 0.1), p, *m, v, *(one * w for one in m), w]
    seen += [*(one * now for one in f), now * w, *r, *c]
    seen += [1 / np.sqrt(one + 1e-8) for one in (*r, *c)]
    seen += [a * b for a, b in zip(m, of_m, strict=True)]
    x = np.stack([unit(one) for one in seen], -1)
    *hidden, (last, bias) = layers
    for W, b in hidden:
        x = relu(x @ W.T + b)
    said = x @ last.T + bias
    size = math.sqrt(np.mean(p**2) + 1e-9)
    taken: Array = 1e-3 * rate * size * said[..., 0] * np.exp(1e-3 * said[..., 1])
    return taken


def schedule(weights: Weights, losses: list[float]) -> float:
    """What the scheduler of Celo says after these losses, from its first update on."""
    h, cell = weights["begin"]
    (W, b), (V, c), (G, gb), (u, e) = weights["scheduler"]
    for y in history(losses, weights["horizon"]):
        x = W @ y + b + relu(V @ y + c)
        h, cell = lstm(G @ np.concatenate([x, h]) + gb, cell)
    return 0.1 * math.exp((u @ h + e).item())


def history(losses: list[float], horizon: int) -> list[Array]:
    """What a scheduler reads at each update: how much is over, and how the losses went."""
    memory = np.exp(-1 / np.logspace(1, math.log10(horizon), 10))
    heard: list[float] = []
    lowest = np.full(10, np.inf)
    read = []
    for t, loss in enumerate(losses):
        whole = 1 - memory ** (t + 1)

        def average(whole: Array = whole) -> Array:
            powers = [memory ** (len(heard) - 1 - i) for i in range(len(heard))]
            total = sum((1 - memory) * k * one for k, one in zip(powers, heard, strict=True))
            return np.asarray(total / whole)

        if t:
            # the averages so far, over what they will have heard with this loss
            loss = min(loss, 2 * abs(float(average().max())))
        heard.append(loss)
        mean = average()
        lowest = np.minimum(lowest, mean)
        seen = (mean[:-1] - lowest[:-1]) / np.maximum(mean[1:] - lowest[:-1], 1e-8) - 1
        if min(heard) == max(heard):
            seen = np.full(9, -1.0)  # and not what rounding, over 1e-8, makes of it
        seen = np.clip(seen, -1, 1) if t >= 2 else np.zeros(9)
        read.append(np.concatenate([np.tanh((t / horizon - PLACES) * 10), seen]))
    return read


def lstm(sums: Array, cell: Array) -> tuple[Array, Array]:
    i, a, f, o = np.split(sums, 4)
    cell = sigmoid(f + 1) * cell + sigmoid(i) * np.tanh(a)
    return sigmoid(o) * np.tanh(cell), cell


def log(value: float) -> float:
    return 0.5 * min(max(math.log(1e-8 + abs(10 * value)), -5.0), 5.0)
