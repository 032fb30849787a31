"""Controllers of the memory-augmented cells, conditioned on a read vector: (2.49)-(2.50)."""

from collections.abc import Callable

import numpy as np

from reference.maths import sigmoid
from reference.result import Array, Shapes, Weights

ControllerStep = Callable[[str, Weights, Array, Array, Array, Array], tuple[Array, Array]]

GATES = {"lstm": "ifoc", "gru": "zrh", "rnn": "h", "ff": "h"}


def controller_shapes(kind: str, input_size: int, hidden_size: int, read_size: int) -> Shapes:
    """Names and shapes of a controller's weights; ``kind`` is a key of ``GATES``."""
    named: Shapes = {}
    for gate in GATES[kind]:
        named[f"W_x{gate}"] = (hidden_size, input_size)
        if kind != "ff":
            named[f"W_h{gate}"] = (hidden_size, hidden_size)
        named[f"W_r{gate}"] = (hidden_size, read_size)
        named[f"b_{gate}"] = (hidden_size,)
    return named


def controller_step(
    kind: str, weights: Weights, x: Array, h: Array, c: Array, r: Array
) -> tuple[Array, Array]:
    r"""One step of the controller: the new (h, c), where c changes only in an LSTM.

    Each pre-activation of the plain cell gains the term ``W_r* r``. In the GRU, ``W_xr``, ``W_hr``,
    ``W_rr`` and ``b_r`` belong to the reset gate, which acts on h alone:

    - ``lstm``: (2.17)-(2.22), no peepholes.
    - ``gru``: (2.30)-(2.33), h~ = tanh(W_xh x + W_hh (reset h) + W_rh r + b_h).
    - ``rnn``: h = tanh(W_xh x + W_hh h + W_rh r + b_h), the vanilla RNN (2.8).
    - ``ff``: h = tanh(W_xh x + W_rh r + b_h), which does not see the old h.
    """

    def linear(gate: str, recurrent: Array | None) -> Array:
        a = weights[f"W_x{gate}"] @ x + weights[f"W_r{gate}"] @ r + weights[f"b_{gate}"]
        return np.asarray(a if recurrent is None else a + weights[f"W_h{gate}"] @ recurrent)

    if kind == "rnn":
        return np.tanh(linear("h", h)), c
    if kind == "ff":
        return np.tanh(linear("h", None)), c
    if kind == "gru":
        update, reset = sigmoid(linear("z", h)), sigmoid(linear("r", h))
        candidate = np.tanh(linear("h", reset * h))
        return (1 - update) * h + update * candidate, c
    i, f, o = sigmoid(linear("i", h)), sigmoid(linear("f", h)), sigmoid(linear("o", h))
    c = f * c + i * np.tanh(linear("c", h))
    return o * np.tanh(c), c


def head_output(weights: Weights, name: str, head: str, x: Array, h: Array) -> Array:
    """``W_x{name}_{head} x + W_h{name}_{head} h + b_{name}_{head}``."""
    key = f"{name}_{head}"
    return np.asarray(weights[f"W_x{key}"] @ x + weights[f"W_h{key}"] @ h + weights[f"b_{key}"])


def head_shapes(outputs: dict[str, int], head: str, input_size: int, hidden_size: int) -> Shapes:
    """Names and shapes of a head's linear maps; ``outputs`` gives the rows of each."""
    named: Shapes = {}
    for name, rows in outputs.items():
        named[f"W_x{name}_{head}"] = (rows, input_size)
        named[f"W_h{name}_{head}"] = (rows, hidden_size)
        named[f"b_{name}_{head}"] = (rows,)
    return named
