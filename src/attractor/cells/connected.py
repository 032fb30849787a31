"""Gates that read an input corrected by the memory: what the IRC and IHC cells have in common."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement, zeros_like_parameters
from attractor.cells.gated import PLAIN, Biases, Map, Maps, Parts, SummedCell
from attractor.cells.init import Initialiser, check_bias, check_chrono, chrono_, uniform_, weights_
from attractor.cells.lstm import LSTMState

Gates = tuple[Tensor, ...]
Update = Callable[[Gates, Tensor, Tensor, Any, Map], tuple[Tensor, Any]]


def gru_update(gates: Gates, a: Tensor, x: Tensor, h: Tensor, memory: Map) -> tuple[Tensor, Tensor]:
    """Equation 17, from the gates i and r."""
    i, r = gates
    h = (1 - i) * h + i * (r * a)
    return h, h


def lstm_update(
    gates: Gates, a: Tensor, x: Tensor, state: LSTMState, memory: Map
) -> tuple[Tensor, LSTMState]:
    """Equations 25 and 26, from the gates f, i and o."""
    f, i, o = gates
    c = f * state.c + i * a
    h = o * torch.tanh(memory(c))
    return h, LSTMState(h, c)


def sru_update(
    gates: Gates, a: Tensor, x: Tensor, state: LSTMState, memory: Map
) -> tuple[Tensor, LSTMState]:
    """Equations 34 and 35, from the gates f and p."""
    f, p = gates
    c = f * state.c + (1 - f) * a
    h = p * memory(c) + (1 - p) * x
    return h, LSTMState(h, c)


def tlstm_update(
    gates: Gates, a: Tensor, x: Tensor, state: LSTMState, memory: Map
) -> tuple[Tensor, LSTMState]:
    """Equations 43 and 44, from the gates f and o."""
    f, o = gates
    c = f * state.c + (1 - f) * a
    h = o * memory(c)
    return h, LSTMState(h, c)


def fastgrnn_update(
    gates: Gates, a: Tensor, x: Tensor, h: Tensor, memory: Map
) -> tuple[Tensor, Tensor]:
    """Equation 51, from the gate f; beta is already in a."""
    (f,) = gates
    h = f * h + (1 - f) * a
    return h, h


class Design(NamedTuple):
    """What is left of a gated cell once its gates read a corrected input.

    ``forget`` is the sign with which a forget bias enters the first gate: minus where that gate
    lets the new in. ``cell_state`` says whether the state is (h, c) or h alone.
    """

    gates: int
    update: Update
    cell_state: bool
    forget: int = 1


GRU = Design(2, gru_update, cell_state=False, forget=-1)
LSTM = Design(3, lstm_update, cell_state=True)
SRU = Design(2, sru_update, cell_state=True)
TLSTM = Design(2, tlstm_update, cell_state=True)
FASTGRNN = Design(1, fastgrnn_update, cell_state=False)


class ConnectedInput(NamedTuple):
    """What the input contributes to gates, the input itself, and the candidate."""

    sums: Tensor
    x: Tensor
    candidate: Tensor


class ConnectedCell(SummedCell[ConnectedInput, Any]):
    """A `Design` whose gates read an input that the memory has corrected."""

    reference = "kuo2020input"
    design: ClassVar[Design]
    connects: ClassVar[type[Any]]
    """Makes the parameters of the correction."""

    square: ClassVar[bool] = False
    """Whether the correction needs as many inputs as units."""

    recurrent_weights: tuple[str, ...] = ("connection.weight",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        bias: bool = True,
        forget_bias: float | None = None,
        t_max: int | None = None,
        input_init: Initialiser = "uniform",
        recurrent_init: Initialiser = "uniform",
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        check_chrono(bias, t_max)
        check_bias(type(self), bias, forget_bias=forget_bias)
        to: Placement = {"device": device, "dtype": dtype}
        self.memory_size = hidden_size if self.design.cell_state else 0
        size = hidden_size if self.square else input_size
        rows = self.design.gates * hidden_size
        self.weight_gates = nn.Parameter(torch.empty(rows, size, **to))
        self.weight_candidate = nn.Parameter(torch.empty(hidden_size, size, **to))
        weights_(self.weight_gates, input_init, hidden_size, generator)
        weights_(self.weight_candidate, input_init, hidden_size, generator)
        self.connection = self.connects(size, hidden_size, recurrent_init, generator, to)
        self.weight_in: nn.Parameter | None = None
        self.bias_forget: nn.Parameter | None = None
        self.bias_highway: nn.Parameter | None = None
        if size != input_size:
            self.weight_in = nn.Parameter(torch.empty(size, input_size, **to))
            uniform_(self.weight_in, input_size**-0.5, generator)
        if forget_bias is not None or t_max is not None:
            kept = torch.full((hidden_size,), float(forget_bias or 0.0), **to)
            if t_max is not None:
                chrono_(kept, t_max, generator)
            self.bias_forget = nn.Parameter(self.design.forget * kept)

    def initial_state(self, batch_size: int) -> Any:
        h = zeros_like_parameters(self, batch_size, self.hidden_size)
        return LSTMState(h, h.clone()) if self.design.cell_state else h

    def carried(self, x: Tensor) -> Tensor:
        """The input, in as many features as the correction has."""
        return x if self.weight_in is None else F.linear(x, self.weight_in)

    def write(self, x: Tensor) -> Tensor:
        """The candidate."""
        return F.linear(x, self.weight_candidate)

    def arrange(self, sums: Tensor, x: Tensor, lengths: Tensor | None) -> ConnectedInput:
        x = self.carried(x)
        return ConnectedInput(sums, x, self.write(x))

    def memory(self, state: Any) -> Tensor:
        """What is fed back."""
        h: Tensor = state.h if self.design.cell_state else state
        return h

    def update(
        self, gates: Tensor, prepared: ConnectedInput, state: Any, maps: Maps
    ) -> tuple[Tensor, Any]:
        """From what the gates read to the output and the new state."""
        return self.design.update(
            torch.sigmoid(gates).chunk(self.design.gates, dim=-1),
            maps.candidate(prepared.candidate),
            prepared.x,
            state,
            maps.memory,
        )

    def gate_biases(self) -> Biases:
        """The biases that the released code has, of all gates."""
        first = (self.bias_forget, self.bias_highway, None)[: self.design.gates]
        return tuple(self.hidden_size if bias is None else bias for bias in first)


class ResidualConnection(nn.Module):
    r"""The correction :math:`\alpha \odot (U_V h_{t-1})`.

    :math:`\alpha` is the sigmoid of ``alpha_raw``, which starts at 2; ``weight`` is :math:`U_V`.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        recurrent_init: Initialiser,
        generator: Generator | None,
        to: Placement,
    ) -> None:
        super().__init__()
        self.alpha_raw = nn.Parameter(torch.full((input_size,), 2.0, **to))
        self.weight = nn.Parameter(torch.empty(input_size, hidden_size, **to))
        weights_(self.weight, recurrent_init, hidden_size, generator, rows=input_size)

    def forward(self, h: Tensor) -> Tensor:
        return torch.sigmoid(self.alpha_raw) * F.linear(h, self.weight)


class DiagonalConnection(nn.Module):
    r"""The same without a matrix, :math:`\alpha \odot (\omega_V \odot h_{t-1})`.

    :math:`\omega_V` is the tanh of ``omega_raw``, which starts at U(±1/sqrt(hidden_size)).
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        recurrent_init: Initialiser,
        generator: Generator | None,
        to: Placement,
    ) -> None:
        super().__init__()
        self.alpha_raw = nn.Parameter(torch.full((hidden_size,), 2.0, **to))
        self.omega_raw = nn.Parameter(torch.empty(hidden_size, **to))
        uniform_(self.omega_raw, hidden_size**-0.5, generator)

    def forward(self, h: Tensor) -> Tensor:
        return torch.sigmoid(self.alpha_raw) * (torch.tanh(self.omega_raw) * h)


class ResidualCell(ConnectedCell):
    r"""Gates that read :math:`W v_t`, where :math:`v_t` is the input plus a correction.

    That is the sum of :math:`W x_t`, which is known for all steps at once, and of what the
    correction makes of the memory.
    """

    connects: ClassVar[type[Any]] = ResidualConnection

    def parts(self) -> Parts:
        rows = self.weight_gates.shape[0]
        return Parts((rows,), (rows,))

    def sums(self, x: Tensor, shift: Tensor | None = None) -> Tensor:
        return F.linear(self.carried(x), self.weight_gates, shift)

    def biases(self) -> Biases:
        return self.gate_biases()

    def recurrent(self, prepared: ConnectedInput, state: Any) -> Tensor:
        return F.linear(self.connection(self.memory(state)), self.weight_gates)

    def activate(
        self, prepared: ConnectedInput, recurrent: Tensor, state: Any, maps: Maps = PLAIN
    ) -> tuple[Tensor, Any]:
        return self.update(prepared.sums + recurrent, prepared, state, maps)
