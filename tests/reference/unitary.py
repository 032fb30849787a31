"""What the unitary cells of this folder have in common: their step, with a given complex W."""

import numpy as np

from reference.maths import relu
from reference.result import Array, Run, State, stack


def run_with(
    W: Array, V: Array, b: Array, x: Array, state: State | None = None, eps: float = 0.01
) -> Run:
    r"""z_t = W h_{t-1} + V x_t and h_t = z / (|z| + eps) ReLU(|z| + eps + b), all complex.

    Left open by the papers: eps, which keeps the modReLU from a pole and, at b = 0, makes it the
    identity; h_0 = 0.
    """
    h = np.zeros(len(b), dtype=complex) if state is None else state["h"]
    records = []
    for x_t in x:
        z = W @ h + V @ x_t
        modulus = np.abs(z) + eps
        h = z / modulus * relu(modulus + b)
        records.append({"h": h, "z": z})
    steps = stack(records)
    return Run(steps["h"], {"h": h}, steps)
