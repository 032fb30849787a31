r"""Products of 2x2 rotations, for the efficient unitary and the gated orthogonal cells.

Jing et al. (2017), Tunable Efficient Unitary Neural Networks, arXiv:1612.05231, section 4. A
rotation of coordinates (p, q) replaces

.. math::
    \begin{pmatrix} h_p \\ h_q \end{pmatrix} \leftarrow
    \begin{pmatrix} e^{i\phi}\cos\theta & -e^{i\phi}\sin\theta \\ \sin\theta & \cos\theta
    \end{pmatrix} \begin{pmatrix} h_p \\ h_q \end{pmatrix},

so the phase sits on the first coordinate of the pair. A layer F rotates disjoint pairs at once.
The layers multiply as written in the paper, :math:`W = D F_1 F_2 \cdots F_L` with
:math:`D = \mathrm{diag}(e^{i\omega})`: applied to a vector, **the last layer acts first and D acts
last**. Indices below count from 0.

The authors' released code lets layer 1 act first and puts the phase on the second column of the
rotation instead of its first row. That spans the same kind of matrices, but the same angles give
another one.

FFT-style layout (size N a power of two, L = log2 N). Layer l = 1, ..., L rotates, with
p = N / 2^l, the pairs (2pk + j, 2pk + p + j) for k = 0, ..., 2^(l-1) - 1 and j = 0, ..., p - 1.
Angle number ``k p + j`` of layer l belongs to that pair. For N = 8:

    l=1 (0,4) (1,5) (2,6) (3,7);  l=2 (0,2) (1,3) (4,6) (5,7);  l=3 (0,1) (2,3) (4,5) (6,7)

Tunable layout (any N >= 2, any L). Odd layers are A layers, with pairs (0,1), (2,3), ...; even
layers are B layers, with pairs (1,2), (3,4), ... Angle number n belongs to the n-th pair. An A
layer has floor(N / 2) pairs, a B layer floor((N - 1) / 2); a coordinate left over is untouched.
"""

from collections.abc import Sequence

import numpy as np

from reference.result import Array, Shapes, Weights

Pairs = list[tuple[int, int]]


def fft_pairs(size: int) -> list[Pairs]:
    """The coordinate pairs of layers 1, ..., log2(size) of the FFT-style layout."""
    levels = size.bit_length() - 1
    if size < 2 or 2**levels != size:
        raise ValueError(
            f"the FFT-style layout expects a hidden size that is a power of two, but got {size}. "
            "Use the tunable layout for other sizes."
        )
    layers = []
    for level in range(1, levels + 1):
        p = size // 2**level
        pairs = []
        for k in range(2 ** (level - 1)):
            for j in range(p):
                pairs.append((2 * p * k + j, 2 * p * k + p + j))
        layers.append(pairs)
    return layers


def tunable_pairs(size: int, capacity: int) -> list[Pairs]:
    """The coordinate pairs of layers 1, ..., capacity of the tunable layout: A, B, A, B, ..."""
    layers = []
    for level in range(1, capacity + 1):
        first = 0 if level % 2 == 1 else 1
        layers.append([(n, n + 1) for n in range(first, size - 1, 2)])
    return layers


def angle_shapes(
    size: int, capacity: int | None, names: Sequence[str] = ("theta", "phi")
) -> Shapes:
    """Shapes of the angles; ``capacity=None`` is the FFT-style layout."""
    named: Shapes = {}
    for name in names:
        if capacity is None:
            named[name] = (size.bit_length() - 1, size // 2)
        else:
            named[f"{name}_A"] = ((capacity + 1) // 2, size // 2)
            named[f"{name}_B"] = (capacity // 2, (size - 1) // 2)
    return named


def layers_of(
    weights: Weights, size: int, capacity: int | None, *, real: bool
) -> list[tuple[Pairs, Array, Array]]:
    """Pairs, theta and phi of layers 1, ..., L; phi is zero when the rotations are real."""
    all_pairs = fft_pairs(size) if capacity is None else tunable_pairs(size, capacity)
    layers = []
    for index, pairs in enumerate(all_pairs):
        if capacity is None:
            suffix, row = "", index
        else:
            suffix, row = ("_A", "_B")[index % 2], index // 2
        theta = weights[f"theta{suffix}"][row]
        phi = np.zeros(len(pairs)) if real else weights[f"phi{suffix}"][row]
        layers.append((pairs, theta, phi))
    return layers


def rotate(h: Array, layers: Sequence[tuple[Pairs, Array, Array]]) -> Array:
    """F_1 F_2 ... F_L h: the last layer acts first."""
    for pairs, theta, phi in reversed(layers):
        new = h.copy()
        for (p, q), th, ph in zip(pairs, theta, phi, strict=True):
            phase = np.exp(1j * ph) if np.iscomplexobj(h) else 1.0
            new[p] = phase * np.cos(th) * h[p] - phase * np.sin(th) * h[q]
            new[q] = np.sin(th) * h[p] + np.cos(th) * h[q]
        h = new
    return h
