r"""Cells other than the LSTM under layer and batch normalisation, each written out on its own.

``N(site, z)`` stands for the normaliser at one place of a cell: of z (B, size), one row for each
sequence, it makes LN(z; alpha, beta) or BN(z; gamma, beta) with the parameters of that place.
``run`` takes a cell through a batch of sequences; the cells below are one step each, from the
weights w, the input x (B, N), the state and N to the output and the new state.

Left open by the papers:
    * Ba et al. (2016), supplementary material, have the GRU with the reset after the product; the
      two gates are normalised together, and the candidate apart from them. The other GRU follows
      them, with the product W_hh (r * h) in the place of W_hh h. The GORU is a GRU whose candidate
      reads a rotation of h in place of that product.
    * Where the papers stack gates, the units of all of them are normalised together.
    * A candidate that reads neither the state nor passes a squashing function (SRU, IRC, IHC) is
      not normalised. The cell state is normalised where it is read, and kept as it is.
    * IRC: W v = W x + W (alpha * feedback), a sum of the input's and the state's contribution, is
      normalised as any other.
    * IHC: W v is no such sum, for g stands before both. So each matrix product is normalised where
      it is made: W_G x, Gamma h, U_V h and W v.
    * Cooijmans et al. (2016) fix the shifts of BN at zero beside a bias; where a sum has none, as
      the IRC's gates, the GORU's candidate and what turns DecayNet's angle, BN(W x) has a shift.

References:
    Ba et al. (2016), arXiv:1607.06450; Cooijmans et al. (2016), arXiv:1603.09025; the cells' own
    are in their files.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from reference.maths import relu, sigmoid

Array = npt.NDArray[np.float64]
Weights = dict[str, Array]
Normaliser = Callable[[str, Array], Array]
State = dict[str, Array]
Step = Callable[[Weights, Array, State, Normaliser], tuple[Array, State]]


def gru(w: Weights, x: Array, s: State, N: Normaliser, *, reset_after: bool) -> tuple[Array, State]:
    """(2.30)-(2.33) of Chandar's thesis, and Ba et al."""
    h = s["h"]
    from_x = N("x_gates", _cat(x @ w["W_xr"].T, x @ w["W_xz"].T))
    from_h = N("h_gates", _cat(h @ w["W_hr"].T, h @ w["W_hz"].T))
    r, z = np.split(sigmoid(from_x + from_h + _cat(w["b_r"], w["b_z"])), 2, axis=-1)
    if reset_after:
        inner = r * (N("h_candidate", h @ w["W_hh"].T) + w["b_hh"])
    else:
        inner = N("h_candidate", (r * h) @ w["W_hh"].T)
    a = np.tanh(N("x_candidate", x @ w["W_xh"].T) + w["b_h"] + inner)
    h = (1 - z) * h + z * a
    return h, {"h": h}


def goru(w: Weights, x: Array, s: State, N: Normaliser) -> tuple[Array, State]:
    """``U`` is the rotation as a matrix."""
    h = s["h"]
    from_x = N("x_gates", _cat(x @ w["W_xr"].T, x @ w["W_xz"].T))
    from_h = N("h_gates", _cat(h @ w["W_hr"].T, h @ w["W_hz"].T))
    r, z = np.split(sigmoid(from_x + from_h + _cat(w["b_r"], w["b_z"])), 2, axis=-1)
    a = N("x_candidate", x @ w["W_x"].T) + r * N("h_candidate", h @ w["U"].T)
    h = z * h + (1 - z) * np.sign(a) * relu(np.abs(a) + 0.001 + w["b"])
    return h, {"h": h}


def decaynet(w: Weights, x: Array, s: State, N: Normaliser, *, D: int) -> tuple[Array, State]:
    """Section 4.1.4 of Kuo's thesis; ``p`` is the angle."""
    h = s["h"]
    from_x = N("x_gates", _cat(*(x @ w[f"W_{k}"].T for k in "FIOA")))
    from_h = N("h_gates", _cat(*(h @ w[f"U_{k}"].T for k in "FIOA")))
    turn, i, o, a = np.split(from_x + from_h, 4, axis=-1)
    p = s["p"] - np.pi / (2 * D) * (turn + 3) / 6
    f = np.where(p > np.pi / 2, 1.0, np.where(p < 0, 0.0, np.sin(p)))
    c = f * s["c"] + sigmoid(i + w["b_I"]) * np.tanh(a + w["b_A"])
    h = sigmoid(o + w["b_O"]) * np.tanh(N("c", c))
    return h, {"h": h, "c": c, "p": p}


def sru(w: Weights, x: Array, s: State, N: Normaliser) -> tuple[Array, State]:
    """(27)-(30) of Kuo et al., with as many inputs as units."""
    c = s["c"]
    from_x = N("x_gates", _cat(x @ w["W_F"].T, x @ w["W_P"].T))
    from_c = N("h_gates", _cat(w["omega_F"] * c, w["omega_P"] * c))
    f, p = np.split(sigmoid(from_x + from_c + _cat(w["b_F"], w["b_P"])), 2, axis=-1)
    c = f * c + (1 - f) * (x @ w["W_A"].T)
    return p * N("c", c) + (1 - p) * x, {"c": c}


def irc(w: Weights, x: Array, s: State, N: Normaliser, *, kind: str) -> tuple[Array, State]:
    """(14)-(17), (22)-(26), (31)-(35), (40)-(44), (48)-(51) of Kuo et al."""
    names = GATES[kind]
    h = s["h"]
    feedback = np.tanh(w["u_omega"]) * h if "u_omega" in w else h @ w["U_V"].T
    correction = sigmoid(w["u_alpha"]) * feedback
    from_x = N("x_gates", _cat(*(x @ w[f"W_{k}"].T for k in names)))
    from_h = N("h_gates", _cat(*(correction @ w[f"W_{k}"].T for k in names)))
    bias = _cat(*(w.get(f"b_{k}", np.zeros(h.shape[-1])) for k in names))
    gates = np.split(sigmoid(from_x + from_h + bias), len(names), axis=-1)
    return _update(kind, w, x, s, dict(zip(names, gates, strict=True)), N)


def ihc(w: Weights, x: Array, s: State, N: Normaliser, *, kind: str) -> tuple[Array, State]:
    """(52)-(53) of Kuo et al., and the rest as above."""
    names = GATES[kind]
    h = s["h"]
    gate = N("h_highway", h @ w["Gamma"].T)
    if "W_G" in w:
        gate = gate + N("x_gates", x @ w["W_G"].T) + w["b_G"]
    g = sigmoid(gate)
    v = (1 - g) * x + g * N("h_feedback", h @ w["U_V"].T)
    bias = _cat(*(w.get(f"b_{k}", np.zeros(h.shape[-1])) for k in names))
    from_v = N("v_gates", _cat(*(v @ w[f"W_{k}"].T for k in names)))
    gates = np.split(sigmoid(from_v + bias), len(names), axis=-1)
    return _update(kind, w, x, s, dict(zip(names, gates, strict=True)), N)


GATES = {"gru": "IR", "lstm": "FIO", "sru": "FP", "tlstm": "FO", "fastgrnn": "F"}


def _update(
    kind: str, w: Weights, x: Array, s: State, gate: dict[str, Array], N: Normaliser
) -> tuple[Array, State]:
    a = x @ w["W_A"].T
    if kind == "gru":
        h = (1 - gate["I"]) * s["h"] + gate["I"] * (gate["R"] * a)
        return h, {"h": h}
    if kind == "fastgrnn":
        h = gate["F"] * s["h"] + sigmoid(w["u_beta"]) * (1 - gate["F"]) * a
        return h, {"h": h}
    new = gate["I"] if kind == "lstm" else 1 - gate["F"]
    c = gate["F"] * s["c"] + new * a
    if kind == "lstm":
        h = gate["O"] * np.tanh(N("c", c))
    elif kind == "sru":
        h = gate["P"] * N("c", c) + (1 - gate["P"]) * x
    else:
        h = gate["O"] * N("c", c)
    return h, {"h": h, "c": c}


def layer_norm(gains: Weights, shifts: Weights, eps: float = 1e-5) -> Normaliser:
    """LN(z; alpha, beta): over the units of each row."""

    def normalise(site: str, z: Array) -> Array:
        mu = z.mean(axis=-1, keepdims=True)
        variance = ((z - mu) ** 2).mean(axis=-1, keepdims=True)
        return np.asarray(gains[site] * (z - mu) / np.sqrt(variance + eps) + shifts[site])

    return normalise


class BatchNorm:
    """BN(z; gamma, beta): over the batch, with the statistics of each step.

    ``stored`` has mean and variance (T_max, size) of each site, which training moves.
    """

    def __init__(
        self,
        gains: Weights,
        shifts: Weights,
        stored: dict[str, tuple[Array, Array]],
        *,
        training: bool,
        momentum: float,
        eps: float = 1e-5,
    ) -> None:
        self.gains, self.shifts, self.eps = gains, shifts, eps
        self.stored = {k: (mean.copy(), var.copy()) for k, (mean, var) in stored.items()}
        self.training, self.momentum = training, momentum
        self.step = 0

    def __call__(self, site: str, z: Array) -> Array:
        means, variances = self.stored[site]
        if self.training:
            mean = z.mean(axis=0)
            variance = ((z - mean) ** 2).mean(axis=0)
            if self.step < len(means):
                for kept, new in ((means, mean), (variances, variance)):
                    kept[self.step] += self.momentum * (new - kept[self.step])
        else:
            row = min(self.step, len(means) - 1)
            mean, variance = means[row], variances[row]
        normal = (z - mean) / np.sqrt(variance + self.eps)
        return np.asarray(self.gains[site] * normal + self.shifts.get(site, 0.0))


def run(step: Step, w: Weights, x: Array, s: State, N: Any) -> tuple[Array, State]:
    """Take sequences x (T, B, N) through the steps."""
    outputs = []
    for t in range(x.shape[0]):
        if isinstance(N, BatchNorm):
            N.step = t
        y, s = step(w, x[t], s, N)
        outputs.append(y)
    return np.array(outputs), s


def _cat(*parts: Array) -> Array:
    return np.concatenate(parts, axis=-1)
