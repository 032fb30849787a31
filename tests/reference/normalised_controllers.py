"""Controllers of the cells with a memory, with layer normalisation and recurrent dropout.

Ba et al. (2016) and Semeniuta et al. (2016) on (2.49)-(2.50) of Chandar's thesis, which says
nothing of the places: here every product, of x, of h and of what was read, is normalised on its own
over all gates that read it together, and the bias is added after. A GRU's candidate is normalised
apart from its gates, as Ba et al. have it; an LSTM's cell where it is shown.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from reference.controllers import ControllerStep
from reference.maths import sigmoid
from reference.result import Array, Weights
from reference.tardis import layer_norm

GATES = {"lstm": "ifco", "gru": "rzh", "rnn": "h", "ff": "h"}


def normalised_step(
    norms: Mapping[str, tuple[Array, Array]] | None, masks: Array | None
) -> ControllerStep:
    """A controller's step, with gains and shifts of ``x``, ``h``, ``r``, ``inner`` and ``c``.

    Args:
        norms: gain and shift of each vector, gates in the order of ``GATES``; ``None`` for none.
        masks: what the candidate of each step is multiplied by, ``(T, H)``; ``None`` for one.
    """
    count = iter(range(10**6))

    def normal(name: str, z: Array, parts: list[int]) -> Array:
        if norms is None:
            return z
        gain, shift = norms[name]
        pieces, start = [], 0
        for size in parts:
            rows = slice(start, start + size)
            pieces.append(layer_norm(z[rows], gain[rows], shift[rows]))
            start += size
        return np.concatenate(pieces)

    def step(kind: str, w: Weights, x: Array, h: Array, c: Array, r: Array) -> Any:
        n, gates = len(h), GATES[kind]
        mask = 1.0 if masks is None else masks[next(count)]
        parts = [2 * n, n] if kind == "gru" else [len(gates) * n]

        def product(side: str, value: Array, which: str) -> Array:
            return np.concatenate([w[f"W_{side}{g}"] @ value for g in which])

        total = normal("x", product("x", x, gates), parts)
        total = total + np.concatenate([w[f"b_{g}"] for g in gates])
        total = total + normal("r", product("r", r, gates), parts)
        if kind == "gru":
            seen = normal("h", product("h", h, "rz"), [2 * n])
            reset, update = np.split(sigmoid(total[: 2 * n] + seen), 2)
            inner = normal("inner", product("h", reset * h, "h"), [n])
            return (1 - update) * h + update * np.tanh(total[2 * n :] + inner) * mask, c
        if kind != "ff":
            total = total + normal("h", product("h", h, gates), parts)
        if kind != "lstm":
            return np.tanh(total) * mask, c
        i, f, a, o = np.split(total, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(a) * mask
        return sigmoid(o) * np.tanh(normal("c", c, [n])), c

    return step
