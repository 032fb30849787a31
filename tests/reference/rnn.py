"""Vanilla recurrent network: Chandar's thesis (2.8), and layer normalisation (2.75)-(2.77)."""

from collections.abc import Callable

import numpy as np

from reference.maths import relu
from reference.result import Array, Run, Shapes, State, Weights, stack


def shapes(input_size: int, hidden_size: int, *, layer_norm: bool = False) -> Shapes:
    """Names and shapes of the weights."""
    named: Shapes = {
        "U": (hidden_size, input_size),
        "W": (hidden_size, hidden_size),
        "b": (hidden_size,),
    }
    if layer_norm:
        named |= {"gamma": (hidden_size,), "beta": (hidden_size,)}
    return named


def run(
    weights: Weights,
    x: Array,
    *,
    activation: str = "tanh",
    layer_norm: bool = False,
    eps: float = 1e-5,
    state: State | None = None,
) -> Run:
    r"""Take one sequence through the cell.

    .. math::
        a_t &= U x_t + W h_{t-1} + b \tag{2.8} \\
        \hat a_t &= (a_t - \mu_l) / \sqrt{\sigma_l^2 + \epsilon} \tag{2.77} \\
        h_t &= f(\gamma \odot \hat a_t + \beta) \quad\text{or, without normalisation, } f(a_t)

    Left open by the paper:
        - :math:`\epsilon` is 1e-5, inside the root.
        - The normalised quantity is the whole pre-activation of (2.8), so ``b`` is inside it and
          ``beta`` outside. ``b = 0`` gives the form of Ba et al. (2016).
        - :math:`h_0 = 0`.

    Args:
        weights: ``U (H, I)``, ``W (H, H)``, ``b (H,)``; with ``layer_norm`` also ``gamma (H,)``
            and ``beta (H,)``.
        x: ``(T, I)``.
        activation: ``"tanh"`` or ``"relu"``.
        layer_norm: normalise the pre-activation over the units; the variance divides by H.
        eps: the constant of (2.77).
        state: ``h (H,)``.

    Returns:
        outputs :math:`h_t`; state ``h``; steps ``h``, ``a`` (what the activation receives).
    """
    U, W, b = weights["U"], weights["W"], weights["b"]
    hidden_size = len(b)
    h = np.zeros(hidden_size) if state is None else state["h"]
    records = []
    for x_t in x:
        a = U @ x_t + W @ h + b
        if layer_norm:
            mean = sum(a) / hidden_size
            variance = sum((a - mean) ** 2) / hidden_size
            a = weights["gamma"] * (a - mean) / np.sqrt(variance + eps) + weights["beta"]
        h = np.tanh(a) if activation == "tanh" else relu(a)
        records.append({"h": h, "a": a})
    steps = stack(records)
    return Run(steps["h"], {"h": h}, steps)


def recurrent_matrix(
    U_0: Array, V_0: Array, below: Array, above: Array, p: Array, margin: float
) -> Array:
    r"""W = U S V^T (2.41) with s_i = 2 m (sigma(p_i) - 0.5) + 1 (2.42).

    Left open by the thesis: how U and V stay orthogonal. Vorontsov et al. (2017) move each by a
    Cayley transform, U = (I + A / 2)^{-1} (I - A / 2) U_0, with a skew-symmetric A.

    Args:
        U_0: orthogonal, where U begins; V_0 likewise.
        below: the entries of U's A below its diagonal, as a square matrix whose others are ignored.
        above: the same for V, of which the entries above the diagonal are V's A transposed.
        p: the parameters of the singular values.
        margin: m.
    """
    n = len(p)

    def moved(entry: Callable[[int, int], float], base: Array) -> Array:
        A = np.zeros((n, n))
        for i in range(n):
            for j in range(i):
                A[i, j], A[j, i] = entry(i, j), -entry(i, j)
        return np.asarray(np.linalg.inv(np.eye(n) + A / 2) @ (np.eye(n) - A / 2) @ base)

    U = moved(lambda i, j: below[i, j], U_0)
    V = moved(lambda i, j: above[j, i], V_0)
    s = np.array([2 * margin * (1 / (1 + np.exp(-p_i)) - 0.5) + 1 for p_i in p])
    return np.asarray(U @ np.diag(s) @ V.T)


def orthogonality_penalty(W: Array, strength: float) -> float:
    """lambda ||W^T W - I||^2 (2.40), with the norm of Frobenius."""
    return strength * float(np.sum((W.T @ W - np.eye(len(W))) ** 2))
