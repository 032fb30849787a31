"""Convolution, batch norm and pooling in NumPy, written from their definitions."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def convolve(x: Array, kernel: Array, stride: int = 1) -> Array:
    """Each answer is the sum of the kernel times the pixels under it; zeros lie around an image."""
    outputs, _, size, _ = kernel.shape
    reach = size // 2
    padded = np.pad(x, ((0, 0), (0, 0), (reach, reach), (reach, reach)))
    rows = range(0, x.shape[2], stride)
    columns = range(0, x.shape[3], stride)
    y = np.zeros((len(x), outputs, len(rows), len(columns)))
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            under = padded[:, :, row : row + size, column : column + size]
            y[:, :, i, j] = np.einsum("bcij,ocij->bo", under, kernel)
    return y


def normalise(x: Array, weight: Array, bias: Array) -> Array:
    """Batch norm with the statistics of the batch, over all but the channels."""
    axes = (0, *range(2, x.ndim))
    shape = (1, -1, *[1] * (x.ndim - 2))
    z = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)
    y: Array = z * weight.reshape(shape) + bias.reshape(shape)
    return y


def pool(x: Array) -> Array:
    """The largest of each 2 by 2 pixels, or of those there are at an odd border."""
    rows, columns = range(0, x.shape[2], 2), range(0, x.shape[3], 2)
    parts = [[x[:, :, r : r + 2, c : c + 2].max((2, 3)) for c in columns] for r in rows]
    return np.moveaxis(np.array(parts), (0, 1), (2, 3))


def relu(x: Array) -> Array:
    return np.maximum(x, 0)
