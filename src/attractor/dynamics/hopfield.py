"""The dynamic Hopfield network, and the ladder from the GRU to its input residual form."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells import Cell, GRUCell, IRCGRUCell
from attractor.cells.base import Placement, zeros_like_parameters
from attractor.cells.init import weights_
from attractor.dynamics.orbits import orbit


def hopfield_step(
    patterns: Tensor, zeta: float | Tensor = 0.1, beta: float = 4.0
) -> Callable[[Tensor], Tensor]:
    r"""One step of the dynamic Hopfield network, :math:`h + \zeta \odot (-h + a)`.

    Here :math:`a = \tanh(\beta W h)` with :math:`W = \Xi^\top \Xi / n` of the patterns in rows.
    With one :math:`\zeta` per unit it is (4.7); a GRU whose gate is :math:`\zeta` and whose
    candidate is a takes the same step, and departs where its gates depend on h.

    Example:
        >>> step = hopfield_step(torch.tensor([[1.0, -1.0, 1.0, -1.0]]), zeta=0.5)
        >>> step(torch.tensor([0.5, -0.5, 0.5, 0.5])).sign().tolist()
        [1.0, -1.0, 1.0, -1.0]

    References:
        Kuo (2021), thesis, equations 4.4 to 4.8; Kuo et al. (2020), equations 1 to 5.
    """
    W = patterns.T @ patterns / patterns.shape[-1]
    return lambda h: h + zeta * (-h + torch.tanh(beta * h @ W.T))


@dataclass(frozen=True, slots=True)
class Recall:
    """Overlaps ``(steps + 1, starts, patterns)`` of states with patterns on the way."""

    overlaps: Tensor

    @property
    def recalled(self) -> Tensor:
        """The pattern that each start ends at, ``(starts,)``."""
        return self.overlaps[-1].abs().argmax(-1)


def recall(
    patterns: Tensor, starts: Tensor, *, zeta: float = 0.1, beta: float = 4.0, steps: int = 200
) -> Recall:
    """Let a Hopfield network run from states ``(starts, units)`` towards what it has stored.

    Example:
        >>> stored = torch.tensor([[1.0, 1.0, -1.0, -1.0], [1.0, -1.0, 1.0, -1.0]])
        >>> noisy = torch.tensor([[0.9, 0.2, -0.1, -0.8]])
        >>> recall(stored, noisy).recalled.tolist()
        [0]
    """
    states = orbit(hopfield_step(patterns, zeta, beta), starts, steps)
    return Recall(states @ patterns.T / patterns.shape[-1])


class _Rung(Cell[Tensor, Tensor]):
    """A cell between the GRU and the input residual connection: two gates and a candidate."""

    reference = "kuo2020input"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        to: Placement = {"device": device, "dtype": dtype}
        self.weight_ih = nn.Parameter(torch.empty(3 * hidden_size, input_size, **to))
        weights_(self.weight_ih, "uniform", hidden_size, generator)

    def initial_state(self, batch_size: int) -> Tensor:
        return zeros_like_parameters(self, batch_size, self.hidden_size)


class LinearGRUCell(_Rung):
    r"""The first rung: a GRU without the tanh of its candidate.

    .. math::
        i_t, r_t &= \sigma(W_{\{I,R\}} x_t + U_{\{I,R\}} h_{t-1} + b_{\{I,R\}}) \\
        a_t &= W_A x_t + U_A (r_t \odot h_{t-1}) + b_A \\
        h_t &= (1 - i_t) \odot h_{t-1} + i_t \odot a_t

    Example:
        >>> cell = LinearGRUCell(3, 4)
        >>> cell(torch.zeros(2, 3))[0].shape
        torch.Size([2, 4])

    Departs from the paper: nothing.

    References:
        Kuo (2021), thesis, equation 4.12.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, generator=generator, device=device, dtype=dtype)
        self.weight_hh = nn.Parameter(
            torch.empty(3 * hidden_size, hidden_size, device=device, dtype=dtype)
        )
        self.bias = nn.Parameter(torch.zeros(3 * hidden_size, device=device, dtype=dtype))
        weights_(self.weight_hh, "uniform", hidden_size, generator)

    def prepare(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight_ih, self.bias)

    def step(self, prepared: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        n = 2 * self.hidden_size
        gates = torch.sigmoid(prepared[..., :n] + F.linear(state, self.weight_hh[:n]))
        i, r = gates.chunk(2, dim=-1)
        a = prepared[..., n:] + F.linear(r * state, self.weight_hh[n:])
        h = (1 - i) * state + i * a
        return h, h


class InputGRUCell(_Rung):
    r"""The second rung: gates and candidate read the input alone, without biases.

    .. math::
        i_t, r_t &= \sigma(W_{\{I,R\}} x_t) \\
        a_t &= W_A x_t \\
        h_t &= (1 - i_t) \odot h_{t-1} + i_t \odot (r_t \odot a_t)

    It is no longer a real recurrent network: its gates do not know what it remembers, which the
    input residual connection, the third rung, gives back.

    Example:
        >>> cell = InputGRUCell(3, 4)
        >>> cell(torch.zeros(2, 3))[0].shape
        torch.Size([2, 4])

    Departs from the paper: (4.15) and (4.16) leave the reset gate without a place; here it is
    where the third rung has it (4.19).

    References:
        Kuo (2021), thesis, equations 4.15 and 4.16.
    """

    def prepare(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight_ih)

    def step(self, prepared: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        i, r, a = prepared.chunk(3, dim=-1)
        i, r = torch.sigmoid(i), torch.sigmoid(r)
        h = (1 - i) * state + i * (r * a)
        return h, h


LADDER: dict[str, type[Cell[Any, Any]]] = {
    "gru": GRUCell,
    "linear": LinearGRUCell,
    "input": InputGRUCell,
    "irc": IRCGRUCell,
}
"""The simplifications from the GRU to its input residual form, in their order."""
