r"""More strategies of continual learning, written as those of `reference.strategies`.

Left open by the papers:
    * DER: the squared distance is a mean over the outputs too (the authors' code).
    * SI: importances below zero count as zero (the authors' code); the gradient along the path is
      that of the task's loss alone.
    * iCaRL: the loss is summed over classes and averaged over samples; every class was seen in the
      first task here, so that all later targets are the old network's.
    * SLDA: the moments begin with the samples of the first task, in their order.
    * Progressive networks: connections from earlier columns start at zero.

References:
    Buzzega et al. (2020), equations 5 and 6; Li and Hoiem (2018), equation 2; Zenke et al. (2017),
    equations 3 to 5; Aljundi et al. (2018), equations 2 to 4; Rebuffi et al. (2017), algorithms 1
    to 5; Prabhu et al. (2020); Caccia et al. (2022), equation 3; Hayes and Kanan (2020), equations
    1 to 4; Rusu et al. (2016), equation 1.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from reference.maths import sigmoid, softmax
from reference.perceptron import Batch, Perceptron
from reference.result import Array

Tasks = Sequence[Sequence[Batch]]


def der(
    net: Perceptron,
    theta: Array,
    tasks: Tasks,
    rate: float,
    *,
    alpha: float,
    beta: float = 0.0,
    **_: Any,
) -> Array:
    """The memory holds everything, and all of it is replayed."""
    memory: list[tuple[Array, int, Array]] = []
    for batches in tasks:
        for batch in batches:
            g = net.mean(theta, batch)
            for x, y, z in memory:
                h = net.says(theta, x)[0]
                delta = alpha * 2 * (h - z) / (len(z) * len(memory))
                one_hot = np.eye(len(h))[y]
                delta = delta + beta * (softmax(h) - one_hot) / len(memory)
                g = g + net.back(theta, x, delta)
            memory += [(x, y, net.says(theta, x)[0]) for x, y in batch]
            theta = theta - rate * g
    return theta


def lwf(
    net: Perceptron,
    theta: Array,
    tasks: Tasks,
    rate: float,
    *,
    strength: float,
    temperature: float,
) -> Array:
    old = None
    for batches in tasks:
        for batch in batches:
            g = net.mean(theta, batch)
            if old is not None:
                for x, _ in batch:
                    h, z = net.says(theta, x)[0], net.says(old, x)[0]
                    delta = softmax(h / temperature) - softmax(z / temperature)
                    g = g + net.back(theta, x, strength * temperature * delta / len(batch))
            theta = theta - rate * g
        old = theta
    return theta


def si(
    net: Perceptron, theta: Array, tasks: Tasks, rate: float, *, strength: float, damping: float
) -> Array:
    importance, centre = np.zeros_like(theta), theta
    for batches in tasks:
        path, start = np.zeros_like(theta), theta
        for batch in batches:
            g = net.mean(theta, batch)
            after = theta - rate * (g + 2 * strength * importance * (theta - centre))
            path -= g * (after - theta)
            theta = after
        importance = importance + np.maximum(path / ((theta - start) ** 2 + damping), 0)
        centre = theta
    return theta


def mas(
    net: Perceptron, theta: Array, tasks: Tasks, rate: float, *, strength: float, **_: Any
) -> Array:
    importance, centre = np.zeros_like(theta), theta
    for batches in tasks:
        for batch in batches:
            pull = 2 * strength * importance * (theta - centre)
            theta = theta - rate * (net.mean(theta, batch) + pull)
        seen = [x for batch in batches for x, _ in batch]
        each = [np.abs(net.back(theta, x, 2 * net.says(theta, x)[0])) for x in seen]
        importance, centre = importance + np.mean(each, 0), theta
    return theta


def _unit(v: Array) -> Array:
    return np.asarray(v / np.linalg.norm(v))


def _herded(features: Sequence[Array], count: int) -> list[int]:
    mean, chosen = np.mean(features, 0), list[int]()
    for k in range(1, min(count, len(features)) + 1):
        total = sum((features[i] for i in chosen), np.zeros_like(mean))
        rest = [i for i in range(len(features)) if i not in chosen]
        far = [float(np.linalg.norm(mean - (features[i] + total) / k)) for i in rest]
        chosen.append(rest[int(np.argmin(far))])
    return chosen


def icarl(
    net: Perceptron, theta: Array, tasks: Tasks, rate: float, *, size: int, **_: Any
) -> Array:
    """All exemplars are replayed with each batch."""
    classes = range(net.sizes[-1])
    exemplars: dict[int, list[tuple[Array, int]]] = {c: [] for c in classes}
    old = None
    for batches in tasks:
        for batch in batches:
            both = [*batch, *(sample for kept in exemplars.values() for sample in kept)]
            g = np.zeros_like(theta)
            for x, y in both:
                wanted = np.eye(len(classes))[y] if old is None else sigmoid(net.says(old, x)[0])
                g += net.back(theta, x, (sigmoid(net.says(theta, x)[0]) - wanted) / len(both))
            theta = theta - rate * g
        room = size // len(classes)
        for c in classes:
            own = [sample for batch in batches for sample in batch if sample[1] == c]
            own += exemplars[c]
            features = [_unit(net.says(theta, x)[1]) for x, _ in own]
            exemplars[c] = [own[i] for i in _herded(features, room)]
        old = theta
    return theta


def gdumb(
    net: Perceptron, theta: Array, tasks: Tasks, rate: float, *, epochs: int, lr: float, **_: Any
) -> Array:
    """The memory holds everything, and is one batch; the rate given does not count."""
    everything = [sample for batches in tasks for batch in batches for sample in batch]
    for t in range(epochs):
        least = lr / 100
        now = least + (lr - least) * (1 + np.cos(np.pi * t / epochs)) / 2
        theta = theta - now * net.mean(theta, everything)
    return theta


def er_ace(net: Perceptron, theta: Array, tasks: Tasks, rate: float, **_: Any) -> Array:
    """The memory holds everything, and all of it is replayed."""
    memory: list[tuple[Array, int]] = []
    for batches in tasks:
        for batch in batches:
            absent = {y for _, y in memory} - {y for _, y in batch}
            g = np.zeros_like(theta)
            for x, y in batch:
                h = net.says(theta, x)[0]
                h[list(absent)] = -np.inf
                delta = softmax(h) - np.eye(len(h))[y]
                g += net.back(theta, x, delta) / len(batch)
            if memory:
                g += net.mean(theta, memory)
            memory += batch
            theta = theta - rate * g
    return theta


def slda(
    net: Perceptron, theta: Array, tasks: Tasks, rate: float, *, shrinkage: float, **_: Any
) -> Array:
    for batch in tasks[0]:
        theta = theta - rate * net.mean(theta, batch)
    width, classes = net.sizes[-2], net.sizes[-1]
    means, counts = np.zeros((classes, width)), np.zeros(classes)
    covariance = np.zeros((width, width))
    for n, (x, y) in enumerate(s for batches in tasks for batch in batches for s in batch):
        z = net.says(theta, x)[1]
        delta = n / (n + 1) * np.outer(z - means[y], z - means[y])
        covariance = (n * covariance + delta) / (n + 1)
        means[y] = (counts[y] * means[y] + z) / (counts[y] + 1)
        counts[y] += 1
    precision = np.linalg.inv((1 - shrinkage) * covariance + shrinkage * np.eye(width))
    theta = theta.copy()
    W, b = net.layers(theta)[-1]
    W[:] = means @ precision
    b[:] = [-m @ precision @ m / 2 for m in means]
    return theta


def progressive(
    net: Perceptron, theta: Array, tasks: Tasks, rate: float, *, columns: Sequence[Array]
) -> Array:
    """``columns`` are the weights with which they begin; all weights, one after the other."""
    columns = [np.array(column) for column in columns]
    sizes = list(zip(net.sizes, net.sizes[1:], strict=False))
    laterals = [
        [[np.zeros((o, i)) for _ in range(k)] for i, o in sizes[1:]] for k in range(len(columns))
    ]

    def reads(k: int, x: Array) -> list[list[Array]]:
        """What each layer of each column up to k reads; its outputs last."""
        found: list[list[Array]] = []
        for j in range(k + 1):
            h, own = x, [x]
            for place, (W, b) in enumerate(net.layers(columns[j])):
                a = W @ h + b
                for i in range(j if place else 0):
                    a = a + laterals[j][place - 1][i] @ found[i][place]
                h = a if place == len(sizes) - 1 else np.tanh(a)
                own.append(h)
            found.append(own)
        return found

    for k, batches in enumerate(tasks):
        for batch in batches:
            g = np.zeros_like(columns[k])
            into = net.layers(g)
            of_laterals = [[np.zeros_like(U) for U in each] for each in laterals[k]]
            for x, y in batch:
                seen = reads(k, x)
                delta = (softmax(seen[k][-1]) - np.eye(net.sizes[-1])[y]) / len(batch)
                for place in reversed(range(len(sizes))):
                    into[place][0][:] += np.outer(delta, seen[k][place])
                    into[place][1][:] += delta
                    for i in range(k if place else 0):
                        of_laterals[place - 1][i] += np.outer(delta, seen[i][place])
                    W = net.layers(columns[k])[place][0]
                    delta = (W.T @ delta) * (1 - seen[k][place] ** 2)
            columns[k] = columns[k] - rate * g
            laterals[k] = [
                [U - rate * d for U, d in zip(each, changes, strict=True)]
                for each, changes in zip(laterals[k], of_laterals, strict=True)
            ]
    rest = [U.flatten() for each in laterals for layer in each for U in layer]
    return np.concatenate([*columns, *rest])
