"""A perceptron with tanh units and its gradient, one sample at a time, for the strategies."""

from collections.abc import Sequence

import numpy as np

from reference.maths import softmax
from reference.result import Array

Batch = Sequence[tuple[Array, int]]
"""Samples, each with its class."""


class Perceptron:
    """From the weights as one vector, W_1, b_1, W_2, b_2 and so on, to the gradient of the loss.

    Masks, if there are any, multiply the hidden units of each layer.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = list(sizes)

    def layers(self, theta: Array) -> list[tuple[Array, Array]]:
        """The vector cut into matrices and biases, which are views of it."""
        found, place = [], 0
        for inputs, outputs in zip(self.sizes, self.sizes[1:], strict=False):
            W = theta[place : place + outputs * inputs].reshape(outputs, inputs)
            place += outputs * inputs
            found.append((W, theta[place : place + outputs]))
            place += outputs
        return found

    def of_one(
        self, theta: Array, x: Array, y: int, masks: Sequence[Array] | None = None
    ) -> tuple[Array, list[Array]]:
        """The gradients of -log p(y|x) in the weights and in the masks."""
        layers = self.layers(theta)
        a = [np.ones(size) for size in self.sizes[1:-1]] if masks is None else list(masks)
        units, shown = [], [x]  # before and after the masks
        for place, (W, b) in enumerate(layers[:-1]):
            units.append(np.tanh(W @ shown[-1] + b))
            shown.append(a[place] * units[-1])
        W, b = layers[-1]
        delta = softmax(W @ shown[-1] + b)
        delta[y] -= 1
        gradient = np.zeros_like(theta)
        into = self.layers(gradient)
        of_masks = [np.zeros(size) for size in self.sizes[1:-1]]
        for place in reversed(range(len(layers))):
            into[place][0][:] = np.outer(delta, shown[place])
            into[place][1][:] = delta
            if place:
                back = layers[place][0].T @ delta
                of_masks[place - 1] = back * units[place - 1]
                delta = back * a[place - 1] * (1 - units[place - 1] ** 2)
        return gradient, of_masks

    def mean(self, theta: Array, batch: Batch) -> Array:
        """The gradient of the mean loss."""
        total = np.zeros_like(theta)
        for x, y in batch:
            total += self.of_one(theta, x, y)[0]
        return total / len(batch)

    def squares(self, theta: Array, batch: Batch) -> Array:
        """The mean of the squared gradients of single samples."""
        total = np.zeros_like(theta)
        for x, y in batch:
            total += self.of_one(theta, x, y)[0] ** 2
        return total / len(batch)

    def says(self, theta: Array, x: Array) -> tuple[Array, Array]:
        """The outputs, before any softmax, and the last hidden units."""
        *hidden, (W, b) = self.layers(theta)
        for V, c in hidden:
            x = np.tanh(V @ x + c)
        return np.asarray(W @ x + b), x

    def back(self, theta: Array, x: Array, delta: Array) -> Array:
        """The gradient of delta'outputs in the weights."""
        layers, shown = self.layers(theta), [x]
        for W, b in layers[:-1]:
            shown.append(np.tanh(W @ shown[-1] + b))
        gradient = np.zeros_like(theta)
        into = self.layers(gradient)
        for place in reversed(range(len(layers))):
            into[place][0][:] = np.outer(delta, shown[place])
            into[place][1][:] = delta
            delta = (layers[place][0].T @ delta) * (1 - shown[place] ** 2)
        return gradient
