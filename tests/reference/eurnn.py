"""Efficient unitary recurrent network, Jing et al. (2017b); Chandar's thesis, section 2.7."""

import numpy as np

from reference.maths import relu
from reference.result import Array, Run, Shapes, State, Weights, stack
from reference.rotations import angle_shapes, layers_of, rotate


def shapes(
    input_size: int, hidden_size: int, *, capacity: int | None = None, real: bool = False
) -> Shapes:
    """Names and shapes of the weights."""
    named: Shapes = {}
    if real:
        named |= angle_shapes(hidden_size, capacity, ("theta",))
        named["U"] = (hidden_size, input_size)
    else:
        named |= angle_shapes(hidden_size, capacity)
        named["omega"] = (hidden_size,)
        named["U_re"] = (hidden_size, input_size)
        named["U_im"] = (hidden_size, input_size)
    named["b"] = (hidden_size,)
    return named


def run(
    weights: Weights,
    x: Array,
    *,
    capacity: int | None = None,
    real: bool = False,
    eps: float = 0.01,
    state: State | None = None,
) -> Run:
    r"""Take one sequence through the cell.

    .. math::
        z_t &= W h_{t-1} + (U_{re} + i U_{im}) x_t, \qquad W = D F_1 F_2 \cdots F_L \\
        h_t &= \mathrm{modReLU}(z_t), \qquad
        \mathrm{modReLU}(z) = \frac{z}{|z| + \epsilon} \, \mathrm{ReLU}(|z| + \epsilon + b)

    ``rotations.py`` says which coordinates each layer rotates and in which order the layers act.

    Left open by the paper:
        - :math:`\epsilon` = 0.01 is added to :math:`|z|` in both places, so a zero bias gives
          exactly z and the norm is preserved. The paper divides by :math:`|z|` alone.
        - The layers act in the order of the printed product, last layer first.
        - Real variant: angles theta only, no phi, no omega, a real U, and
          modReLU(z) = sign(z) ReLU(|z| + eps + b), with sign(0) = 0.
        - h_0 = 0. The output is the complex state itself; how a real layer reads it (its real
          part, or real and imaginary parts side by side) is for the caller to say.

    Args:
        weights: FFT-style: ``theta``, ``phi`` ``(log2 N, N/2)``. Tunable, capacity L:
            ``theta_A``, ``phi_A`` ``(ceil(L/2), floor(N/2))`` and ``theta_B``, ``phi_B``
            ``(floor(L/2), floor((N-1)/2))``; row n of A is layer 2n + 1, row n of B is layer
            2n + 2. Both: ``omega (N,)``, ``U_re``, ``U_im`` ``(N, I)``, ``b (N,)``, all real.
            With ``real``: ``theta`` as above, ``U (N, I)``, ``b (N,)``.
        x: ``(T, I)``.
        capacity: layers of the tunable layout; ``None`` is FFT-style.
        real: use an orthogonal rather than a unitary matrix.
        eps: added to the modulus.
        state: ``h (N,)``, complex unless ``real``.

    Returns:
        outputs :math:`h_t`, complex unless ``real``; state ``h``; steps ``h``, ``z``.
    """
    b = weights["b"]
    size = len(b)
    layers = layers_of(weights, size, capacity, real=real)
    U = weights["U"] if real else weights["U_re"] + 1j * weights["U_im"]
    h = np.zeros(size, dtype=U.dtype) if state is None else state["h"]
    records = []
    for x_t in x:
        z = rotate(h, layers)
        if not real:
            z = np.exp(1j * weights["omega"]) * z
        z = z + U @ x_t
        modulus = np.abs(z) + eps
        phase = np.sign(z) if real else z / modulus
        h = phase * relu(modulus + b)
        records.append({"h": h, "z": z})
    steps = stack(records)
    return Run(steps["h"], {"h": h}, steps)
