"""Random weights and inputs for the tests of the references of Kuo et al."""

import math
from types import ModuleType

import numpy as np
import numpy.typing as npt

from reference import irc_fastgrnn, irc_gru, irc_lstm, irc_sru, irc_tlstm

Array = npt.NDArray[np.float64]

LSTM = [f"{kind}_{gate}" for gate in "FIOA" for kind in "WUb"]
GATES = {
    irc_gru: "IRA",
    irc_lstm: "FIOA",
    irc_sru: "FPA",
    irc_tlstm: "FOA",
    irc_fastgrnn: "FA",
}
DIAGONAL = (irc_sru, irc_tlstm)


def sigma(z: float) -> float:
    return 1 / (1 + math.exp(-z))


def draw(names: list[str], n: int, m: int, seed: int = 0) -> dict[str, Array]:
    """Standard normal weights: W (m, n), U (m, m), everything else (m,)."""
    g = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {"W": (m, n), "U": (m, m)}
    return {name: g.standard_normal(shapes.get(name[0], (m,))) for name in names}


def irc_weights(cell: ModuleType, n: int, m: int, seed: int = 0) -> dict[str, Array]:
    g = np.random.default_rng(seed)
    w = {f"W_{k}": g.standard_normal((m, n)) for k in GATES[cell]}
    w["u_alpha"] = g.standard_normal(n)
    if cell in DIAGONAL:
        w["u_omega"] = g.standard_normal(n)
    else:
        w["U_V"] = g.standard_normal((n, m))
    if cell is irc_fastgrnn:
        w["u_beta"] = g.standard_normal(m)
    return w


def ihc_weights(gates: str, n: int, m: int, seed: int = 0) -> dict[str, Array]:
    g = np.random.default_rng(seed)
    w = {f"W_{k}": g.standard_normal((m, n)) for k in gates}
    w |= {"W_G": g.standard_normal((n, n)), "b_G": g.standard_normal(n)}
    return w | {"U_V": g.standard_normal((n, m)), "Gamma": g.standard_normal((n, m))}


def sequence(T: int, n: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal((T, n))


def batch_norm_weights(n: int, m: int) -> dict[str, Array]:
    names = [f"gamma_{kind}_{k}" for kind in "hx" for k in "FIOA"] + ["gamma_c", "beta_c"]
    return draw([*LSTM, *names], n, m)
