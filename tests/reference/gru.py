"""Gated recurrent unit: Chandar's thesis (2.30)-(2.33)."""

import numpy as np

from reference.maths import sigmoid
from reference.result import Array, Run, Shapes, State, Weights, stack


def shapes(input_size: int, hidden_size: int, *, reset_after: bool = False) -> Shapes:
    """Names and shapes of the weights."""
    named: Shapes = {}
    for gate in "zrh":
        named[f"W_x{gate}"] = (hidden_size, input_size)
        named[f"W_h{gate}"] = (hidden_size, hidden_size)
        named[f"b_{gate}"] = (hidden_size,)
    if reset_after:
        named["b_hh"] = (hidden_size,)
    return named


def run(
    weights: Weights, x: Array, *, reset_after: bool = False, state: State | None = None
) -> Run:
    r"""Take one sequence through the cell.

    .. math::
        z_t &= \sigma(W_{xz} x_t + W_{hz} h_{t-1} + b_z) \tag{2.30} \\
        r_t &= \sigma(W_{xr} x_t + W_{hr} h_{t-1} + b_r) \tag{2.31} \\
        \tilde h_t &= \tanh(W_{xh} x_t + W_{hh}(r_t \odot h_{t-1}) + b_h) \tag{2.32} \\
        h_t &= (1 - z_t) \odot h_{t-1} + z_t \odot \tilde h_t \tag{2.33}

    The update gate admits the candidate: z = 1 replaces the state. ``torch.nn.GRU`` and the
    author's experiments have it the other way round, which is the same cell with z's weights and
    bias negated.

    Left open by the paper: :math:`h_0 = 0`.

    Args:
        weights: for each g of z, r, h: ``W_xg (H, I)``, ``W_hg (H, H)``, ``b_g (H,)``; with
            ``reset_after`` also ``b_hh (H,)``.
        x: ``(T, I)``.
        reset_after: the candidate of ``torch.nn.GRU``, not of the thesis,
            tanh(W_xh x + b_h + r (W_hh h + b_hh)).
        state: ``h (H,)``.

    Returns:
        outputs :math:`h_t`; state ``h``; steps ``h``, ``z``, ``r``, ``h_tilde``.
    """
    h = np.zeros(len(weights["b_z"])) if state is None else state["h"]
    records = []
    for x_t in x:
        z = sigmoid(weights["W_xz"] @ x_t + weights["W_hz"] @ h + weights["b_z"])
        r = sigmoid(weights["W_xr"] @ x_t + weights["W_hr"] @ h + weights["b_r"])
        if reset_after:
            recurrent = r * (weights["W_hh"] @ h + weights["b_hh"])
        else:
            recurrent = weights["W_hh"] @ (r * h)
        h_tilde = np.tanh(weights["W_xh"] @ x_t + recurrent + weights["b_h"])
        h = (1 - z) * h + z * h_tilde
        records.append({"h": h, "z": z, "r": r, "h_tilde": h_tilde})
    steps = stack(records)
    return Run(steps["h"], {"h": h}, steps)
