"""Scalar functions shared by the reference cells; none of them overflows."""

from typing import Any

import numpy as np

from reference.result import Array


def sigmoid(a: Any) -> Array:
    """1 / (1 + exp(-a))."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -np.asarray(a))))


def softplus(a: Any) -> Array:
    """log(1 + exp(a))."""
    return np.asarray(np.logaddexp(0.0, a))


def relu(a: Any) -> Array:
    """max(a, 0)."""
    return np.asarray(np.maximum(a, 0.0))


def softmax(a: Any) -> Array:
    """exp(a[i]) / sum_j exp(a[j]) over a vector."""
    e = np.exp(np.asarray(a) - np.max(a))
    return np.asarray(e / e.sum())


def log_softmax(a: Any) -> Array:
    """log of softmax(a), finite where the softmax itself would vanish."""
    return np.asarray(a - np.logaddexp.reduce(a))


def one_hot(index: int, size: int) -> Array:
    """The vector that is one at ``index`` and zero elsewhere."""
    w = np.zeros(size)
    w[index] = 1.0
    return w


def cosine(u: Array, v: Array, floor: float) -> float:
    """u.v / (max(|u|, floor) max(|v|, floor)); the floor keeps empty cells finite."""
    length_u = max(float(np.sqrt(np.sum(u * u))), floor)
    length_v = max(float(np.sqrt(np.sum(v * v))), floor)
    return float(u @ v) / (length_u * length_v)
