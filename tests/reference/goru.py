"""Gated orthogonal recurrent unit, Jing et al. (2017a); Chandar's thesis, section 2.7."""

import numpy as np

from reference.maths import relu, sigmoid
from reference.result import Array, Run, Shapes, State, Weights, stack
from reference.rotations import angle_shapes, layers_of, rotate


def shapes(input_size: int, hidden_size: int, *, capacity: int | None = None) -> Shapes:
    """Names and shapes of the weights."""
    named = angle_shapes(hidden_size, capacity, ("theta",))
    for gate in "rz":
        named[f"W_x{gate}"] = (hidden_size, input_size)
        named[f"W_h{gate}"] = (hidden_size, hidden_size)
        named[f"b_{gate}"] = (hidden_size,)
    named["W_x"] = (hidden_size, input_size)
    named["b"] = (hidden_size,)
    return named


def run(
    weights: Weights,
    x: Array,
    *,
    capacity: int | None = None,
    eps: float = 0.001,
    state: State | None = None,
) -> Run:
    r"""Take one sequence through the cell.

    .. math::
        r_t &= \sigma(W_{xr} x_t + W_{hr} h_{t-1} + b_r) \\
        z_t &= \sigma(W_{xz} x_t + W_{hz} h_{t-1} + b_z) \\
        \tilde h_t &= \mathrm{modReLU}(W_x x_t + r_t \odot (U h_{t-1})) \\
        h_t &= z_t \odot h_{t-1} + (1 - z_t) \odot \tilde h_t

    with :math:`U = F_1 F_2 \cdots F_L` a product of real rotations (``rotations.py`` with phi = 0
    and no diagonal) and :math:`\mathrm{modReLU}(a) = \mathrm{sign}(a)\,
    \mathrm{ReLU}(|a| + \epsilon + b)`. The reset gate acts after the rotation, and the update gate
    keeps the old state, which is the reverse of (2.33).

    Left open by the paper:
        - The thesis prints no equations for this cell; these are those of arXiv:1706.02761.
        - :math:`\epsilon` = 0.001 is added to :math:`|a|`; sign(0) = 0.
        - The layers act in the order of the printed product, last layer first; h_0 = 0.

    Args:
        weights: ``theta (log2 H, H/2)``, or ``theta_A (ceil(L/2), floor(H/2))`` and
            ``theta_B (floor(L/2), floor((H-1)/2))``; for each gate g of r, z: ``W_xg (H, I)``,
            ``W_hg (H, H)``, ``b_g (H,)``; ``W_x (H, I)``; ``b (H,)``, the bias of the modReLU.
        x: ``(T, I)``.
        capacity: layers of the tunable layout; ``None`` is FFT-style.
        eps: added to the modulus.
        state: ``h (H,)``.

    Returns:
        outputs :math:`h_t`; state ``h``; steps ``h``, ``r``, ``z``, ``h_tilde``, ``rotated``.
    """
    b = weights["b"]
    layers = layers_of(weights, len(b), capacity, real=True)
    h = np.zeros(len(b)) if state is None else state["h"]
    records = []
    for x_t in x:
        r = sigmoid(weights["W_xr"] @ x_t + weights["W_hr"] @ h + weights["b_r"])
        z = sigmoid(weights["W_xz"] @ x_t + weights["W_hz"] @ h + weights["b_z"])
        rotated = rotate(h, layers)
        a = weights["W_x"] @ x_t + r * rotated
        h_tilde = np.sign(a) * relu(np.abs(a) + eps + b)
        h = z * h + (1 - z) * h_tilde
        records.append({"h": h, "r": r, "z": z, "h_tilde": h_tilde, "rotated": rotated})
    steps = stack(records)
    return Run(steps["h"], {"h": h}, steps)
