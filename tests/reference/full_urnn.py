r"""Full-capacity unitary recurrent network: Wisdom et al. (2016), arXiv:1611.00035, section 4.

The recurrence is that of Arjovsky et al. with a W that is any unitary matrix, moved along their
manifold by

.. math::
    W_{k+1} = (I + \tfrac{\lambda}{2} A_k)^{-1} (I - \tfrac{\lambda}{2} A_k) W_k, \qquad
    A_k = G_k W_k^* - W_k G_k^*

with G the gradient of the loss by W, in the convention dL = Re tr(G^* dW).
"""

import numpy as np

from reference.result import Array, Run, State, Weights
from reference.unitary import run_with


def run(weights: Weights, x: Array, *, state: State | None = None) -> Run:
    """Take one sequence through the cell; ``W`` is complex, outputs and state too."""
    return run_with(weights["W"], weights["V"], weights["b"], x, state)


def update(W: Array, G: Array, rate: float) -> Array:
    """One step of gradient descent on the manifold of unitary matrices."""
    A = G @ np.conj(W.T) - W @ np.conj(G.T)
    eye = np.eye(len(W))
    return np.asarray(np.linalg.inv(eye + rate / 2 * A) @ (eye - rate / 2 * A) @ W)
