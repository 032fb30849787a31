"""Catch and release along real sequences, and what the papers claim about them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from attractor.cells import DecayNetCell
from attractor.dynamics.gates import Gates, gates
from attractor.errors import InputError


@dataclass(frozen=True, slots=True)
class Phases:
    """What the cell state does, step by step and unit by unit, ``(time, batch, units)``.

    `release` is where f + i > 1, the slope of ``f x + i tanh(x)`` at the origin; elsewhere the
    gates catch. `grows` is where the magnitude of the cell state becomes larger.
    """

    release: Tensor
    grows: Tensor

    @property
    def released(self) -> float:
        """How often the gates release."""
        return float(self.release.double().mean())

    @property
    def grows_in_release(self) -> float:
        """How often the magnitude grows where the gates release."""
        return _share(self.grows, self.release)

    @property
    def grows_in_catch(self) -> float:
        """How often it grows where they catch."""
        return _share(self.grows, ~self.release)

    @property
    def reversals(self) -> float:
        """How often a unit changes from one phase to the other, per step."""
        if len(self.release) < 2:
            return 0.0
        return float((self.release[1:] != self.release[:-1]).double().mean())


def phases(found: Gates, keep: str = "f", write: str | None = "i", memory: str = "c") -> Phases:
    """Tell catch from release along what `gates` recorded.

    Args:
        found: of a cell with a memory that is kept by one gate and written by another.
        keep: the gate that keeps.
        write: the gate that writes; ``None`` where it is one minus the other, as in a JANET.
        memory: the part of the state.

    Example:
        >>> found = gates(torch.nn.LSTM(2, 4), torch.randn(20, 3, 2))
        >>> told = phases(found)
        >>> 0 <= told.released <= 1 and told.grows.shape == (20, 3, 4)
        True

    References:
        Kuo (2021), thesis, sections 4.1.3 and 4.2.6 (f > 1 - i).
    """
    f = found.gate(keep)
    i = 1 - f if write is None else found.gate(write)
    if memory not in found.states:
        raise InputError(
            f"expected a part of the state ({', '.join(found.states)}), but got {memory!r}."
        )
    grows = found.states[memory].abs() > found.before[memory].abs()
    return Phases(f + i > 1, grows)


def _share(what: Tensor, where: Tensor) -> float:
    return float(what[where].double().mean()) if bool(where.any()) else float("nan")


@dataclass(frozen=True, slots=True)
class DecayClaims:
    """What DecayNet's paper claims, measured.

    Attributes:
        outside: share of the forget gate's sums that are not from -3 to 3.
        rising: share of units whose gate rises at least once.
        large: mean magnitude of the cell state at the end where the gate stayed above one half.
        small: where it fell below.
        kept: share of units whose gate stayed above one half.
    """

    outside: float
    rising: float
    large: float
    small: float
    kept: float


@torch.no_grad()
def decay_claims(cell: DecayNetCell, x: Tensor) -> DecayClaims:
    r"""Measure the claims about DecayNet on sequences x ``(time, batch, features)``.

    The sums :math:`W_F x_t + U_F h_{t-1}` are said to stay within [-3, 3], so that the gate never
    rises, and the gates to split the cell state into large and small values.

    Example:
        >>> cell = DecayNetCell(1, 8, length=20)
        >>> told = decay_claims(cell, torch.zeros(20, 2, 1))
        >>> told.outside == 0.0
        True

    References:
        Kuo (2021), thesis, sections 4.1.4.1 and 4.1.4.2.
    """
    found = gates(cell, x)
    n, double = cell.hidden_size, torch.float64
    W, U = cell.weight_ih[:n].to(double), cell.weight_hh[:n].to(double)
    sums = x.to(double) @ W.T + found.before["h"] @ U.T
    f = found.gate("f")
    rising = ((f[1:] - f[:-1]) > 1e-12).any(0)
    magnitude, kept = found.states["c"][-1].abs(), f[-1] > 0.5
    return DecayClaims(
        float((sums.abs() > 3).double().mean()),
        float(rising.double().mean()),
        float(magnitude[kept].mean()) if bool(kept.any()) else float("nan"),
        float(magnitude[~kept].mean()) if bool((~kept).any()) else float("nan"),
        float(kept.double().mean()),
    )
