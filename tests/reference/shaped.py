r"""Rules that see whole tensors, one learner at a time, tensor by tensor.

Functions are called as those of `reference.rules`; ``tensors`` are the tensors' shapes. A vector
has no rows and columns: its squares take the place of both.

References:
    Metz et al. (2022), Practical tradeoffs between memory, compute, and performance in learned
    optimizers, appendix A, with the constants of the released code.
    Moudgil et al. (2025), Celo, for the idea; the equations of `pacer` are those of its docstring.
"""

import math
from typing import Any

import numpy as np

from reference.maths import relu
from reference.result import Array

Weights = dict[str, Any]
Shapes = tuple[tuple[int, ...], ...]


def cut(values: Array, tensors: Shapes) -> list[Array]:
    """The tensors of a row of coordinates."""
    ends = np.cumsum([math.prod(shape) for shape in tensors])[:-1]
    return [p.reshape(s) for p, s in zip(np.split(values, ends), tensors, strict=True)]


def rows_and_columns(square: Array) -> tuple[Array, Array]:
    """Means over the largest and the second largest dimension, kept at size 1."""
    if square.ndim < 2:
        return square, square
    order = sorted(range(square.ndim), key=lambda i: (square.shape[i], i))
    return square.mean(order[-1], keepdims=True), square.mean(order[-2], keepdims=True)


def row_mean(row: Array, shape: tuple[int, ...]) -> Array:
    """The mean of the rows over the second largest dimension."""
    order = sorted(range(len(shape)), key=lambda i: (shape[i], i))
    mean: Array = row.mean(order[-2], keepdims=True)
    return mean


def averaged(history: list[Array], memory: float) -> Array:
    """The average with this memory of all since the start at zero."""
    last = len(history) - 1
    total = np.zeros_like(history[0])
    for i, one in enumerate(history):
        total = total + (1 - memory) * memory ** (last - i) * one
    return total


def unit(x: Array) -> Array:
    units: Array = x / np.sqrt(np.mean(x**2) + 1e-5)
    return units


def small_fc(
    weights: Weights, theta: Array, g: Array, state: Any = None, *, tensors: Shapes
) -> tuple[Array, Any]:
    """One perceptron for every parameter, of 28 features and eleven of time."""
    past = [*(state or []), g]
    t = len(past) - 1
    times = np.tanh(t / np.array([1, 3, 10, 30, 100, 300, 1e3, 3e3, 1e4, 3e4, 1e5]) - 1)

    def memories(name: str, begin: list[float]) -> list[float]:
        decays = [1 - (1 - b) * math.exp(10 * x) for b, x in zip(begin, weights[name], strict=True)]
        return [min(max(one, 0.0), 1.0) for one in decays]

    begin = [0.9, 0.99, 0.999]
    after = []
    for number, p in enumerate(cut(theta, tensors)):
        own = [cut(one, tensors)[number] for one in past]
        now, shape = own[-1], p.shape
        m = [averaged(own, beta) for beta in memories("momentum", begin)]
        (v,) = [averaged([one**2 for one in own], beta) for beta in memories("rms", [0.999])]
        pairs = [rows_and_columns(one**2 + 1e-30) for one in own]
        gamma = memories("adafactor", begin)
        row = [averaged([a for a, _ in pairs], one) for one in gamma]
        column = [averaged([b for _, b in pairs], one) for one in gamma]
        if p.ndim < 2:
            of_g = [1 / np.sqrt(np.maximum(r + 1e-9, 1e-9)) for r in row]
            of_m = [1 / np.sqrt(r + 1e-6) for r in row]
        else:
            of_g = of_m = [
                1
                / np.sqrt(np.maximum(r / (row_mean(r, shape) + 1e-9), 1e-9))
                / np.sqrt(np.maximum(c, 1e-9))
                for r, c in zip(row, column, strict=True)
            ]
        small = 1 / np.sqrt(v + 1e-6)
        features = [now, p, *m, v, *(one * small for one in m), small]
        features += [now * f for f in of_g] + row + column
        features += [1 / np.sqrt(one + 1e-8) for one in (*row, *column)]
        features += [one * f for one, f in zip(m, of_m, strict=True)]
        x = [unit(np.broadcast_to(one, shape)) for one in features]
        h = np.stack([*x, *(np.full(shape, one) for one in times)], -1)
        *hidden, (W, b) = weights["layers"]
        for one, bias in hidden:
            h = relu(h @ one.T + bias)
        said = h @ W.T + b
        step = weights["scale"] * said[..., 0] * np.exp(weights["exponent"] * said[..., 1])
        after.append((p - step).reshape(-1))
    return np.concatenate(after), past


def pacer(
    weights: Weights,
    theta: Array,
    g: Array,
    state: Any = None,
    *,
    tensors: Shapes,
    lr: float = 1.0,
) -> tuple[Array, Any]:
    """Pacer, with its fast iterate z and their average x in full, and all gradients so far."""
    past, z, x, tempo = state or ([], theta, theta, [(0.0, 0.0)] * len(tensors))
    past = [*past, g]
    t = len(past)
    mu, nu, rho = weights["memory"]
    rate = weights["gamma"] * (1 + t / weights["tau"]) ** -weights["p"]
    moves, next_tempo = [], []
    rest = cut(theta, tensors), cut(x - z, tensors), tempo
    for number, (p, D, (ell, trend)) in enumerate(zip(*rest, strict=True)):
        own = [cut(one, tensors)[number] for one in past]
        squares = [one**2 + 1e-14 for one in own]
        pairs = [rows_and_columns(one) for one in squares]
        m, n, v = averaged(own, mu), averaged(own, nu), averaged(squares, rho)
        R = np.broadcast_to(averaged([a for a, _ in pairs], nu), p.shape)
        C = np.broadcast_to(averaged([b for _, b in pairs], nu), p.shape)
        root = np.sqrt(v / (1 - rho**t))
        s = [own[-1] / root, m / (1 - mu**t) / root, n / (1 - nu**t) / root]
        f = 1 / np.sqrt(R / R.mean() * C)
        seen = [unit(one) for one in (*s, f * own[-1], f * m, f * n, p)]
        seen += [np.log(one / one.mean()) / 4 for one in (v, R, C)]
        seen += [np.full(p.shape, math.log(t) / 4)]
        A, a, B, b = weights["correct"]
        said = relu(np.stack(seen, -1) @ A.T + a) @ B.T + b
        d = sum(w * one for w, one in zip(weights["w"], s, strict=True)) + said[..., 0]
        d = d * (s[2] ** 2 + 1e-4) ** (weights["a"] / 2)
        d = d * np.exp(weights["b"] * np.tanh(s[0] * s[2]) + said[..., 1])
        fan_in = math.prod(p.shape[1:]) if p.ndim > 1 else None
        sigma = 1.0 if fan_in is None else 10 * min(max((3 * fan_in) ** -0.5, 0.01), 0.1)
        sizes = [np.mean(one**2) + 1e-4 for one in s]
        cosine = np.mean(s[0] * D) / math.sqrt(np.mean(D**2) + 1e-24) / math.sqrt(sizes[0])
        keep = weights["lambda"]
        trend = keep * trend + (1 - keep) * cosine
        told = [cosine, trend, *(math.log(one) / 4 for one in (sizes[1], sizes[2], t)), ell]
        Y, y, Z, zero = weights["steer"]
        net = (Z @ np.tanh(Y @ np.array([*told, math.log(sigma)]) + y) + zero).item()
        up, down, back = weights["eta"]
        u = (up * max(trend, 0) - down * max(-trend, 0)) / (1 + (t - 1) / weights["omega"])
        u = u + back * max(-ell, 0) + 0.2 * net
        ell = min(max(ell + 0.2 * math.tanh(u / 0.2), -4.0), 6.0)
        next_tempo.append((ell, trend))
        share = min(1.0, weights["r"] / math.sqrt(sizes[0]))
        pace = math.exp(ell / (1 + t / weights["chi"]))
        move = pace * share * sigma ** weights["e"] * d + weights["delta"] * p
        moves.append(lr * rate * move.reshape(-1))
    z = z - np.concatenate(moves)
    c = weights["kappa"] / (t - 1 + weights["kappa"])
    x = (1 - c) * x + c * z
    return (1 - weights["beta"]) * z + weights["beta"] * x, (past, z, x, next_tempo)
