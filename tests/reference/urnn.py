"""Unitary evolution recurrent network: Arjovsky et al. (2016), arXiv:1511.06464, equation 6."""

import numpy as np

from reference.result import Array, Run, State, Weights
from reference.unitary import run_with


def matrix(weights: Weights) -> Array:
    r"""W = D_3 R_2 F^{-1} D_2 Pi R_1 F D_1, each factor as a full complex matrix.

    D_k = diag(exp(i w_k)); R_k = I - 2 v_k v_k^* / |v_k|^2; (Pi z)[j] = z[permutation[j]];
    F[j, k] = exp(-2 pi i j k / n) / sqrt(n).
    """
    n = weights["w_1"].shape[0]
    D = {k: np.diag(np.exp(1j * weights[f"w_{k}"])) for k in (1, 2, 3)}
    R = {}
    for k in (1, 2):
        v = weights[f"v_{k}"]
        R[k] = np.eye(n) - 2 * np.outer(v, np.conj(v)) / np.sum(np.abs(v) ** 2)
    F = np.array([[np.exp(-2j * np.pi * j * k / n) for k in range(n)] for j in range(n)])
    F = F / np.sqrt(n)
    Pi = np.zeros((n, n))
    for j in range(n):
        Pi[j, int(weights["permutation"][j])] = 1
    W = D[3] @ R[2] @ np.conj(F.T) @ D[2] @ Pi @ R[1] @ F @ D[1]
    return np.asarray(W)


def run(weights: Weights, x: Array, *, state: State | None = None) -> Run:
    """Take one sequence through the cell; outputs and state are complex."""
    return run_with(matrix(weights), weights["V"], weights["b"], x, state)
