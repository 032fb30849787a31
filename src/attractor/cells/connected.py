"""Gates that read an input corrected by the memory: what the IRC and IHC cells have in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement, zeros_like_parameters
from attractor.cells.gated import GatedCell, Map, identity
from attractor.cells.init import Initialiser, uniform_, weights_
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


class InputConnection(nn.Module, ABC):
    """How the memory corrects the input before the gates read it."""

    square: ClassVar[bool] = False
    """Whether it needs as many inputs as units."""

    @abstractmethod
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        recurrent_init: Initialiser,
        generator: Generator | None,
        to: Placement,
    ) -> None:
        super().__init__()

    def prepare(self, x: Tensor) -> Any:
        """What of the correction depends on the input alone: a tensor, or ``()`` for nothing."""
        return ()

    @abstractmethod
    def feedback(self, h: Tensor) -> Tensor:
        """What the memory contributes."""

    @abstractmethod
    def forward(self, x: Tensor, prepared: Any, feedback: Tensor) -> Tensor:
        """The corrected input v."""


class ResidualConnection(InputConnection):
    r"""The input residual connection, :math:`v_t = x_t + \alpha \odot (U_V h_{t-1})`.

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
        super().__init__(input_size, hidden_size, recurrent_init, generator, to)
        self.alpha_raw = nn.Parameter(torch.full((input_size,), 2.0, **to))
        self.weight = nn.Parameter(torch.empty(input_size, hidden_size, **to))
        weights_(self.weight, recurrent_init, hidden_size, generator, rows=input_size)

    def feedback(self, h: Tensor) -> Tensor:
        return F.linear(h, self.weight)

    def forward(self, x: Tensor, prepared: Any, feedback: Tensor) -> Tensor:
        return x + torch.sigmoid(self.alpha_raw) * feedback


class DiagonalConnection(InputConnection):
    r"""The same without a matrix, :math:`v_t = x_t + \alpha \odot (\omega_V \odot h_{t-1})`.

    :math:`\omega_V` is the tanh of ``omega_raw``, which starts at U(±1/sqrt(hidden_size)).
    """

    square = True

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        recurrent_init: Initialiser,
        generator: Generator | None,
        to: Placement,
    ) -> None:
        super().__init__(input_size, hidden_size, recurrent_init, generator, to)
        self.alpha_raw = nn.Parameter(torch.full((hidden_size,), 2.0, **to))
        self.omega_raw = nn.Parameter(torch.empty(hidden_size, **to))
        uniform_(self.omega_raw, hidden_size**-0.5, generator)

    def feedback(self, h: Tensor) -> Tensor:
        return torch.tanh(self.omega_raw) * h

    def forward(self, x: Tensor, prepared: Any, feedback: Tensor) -> Tensor:
        return x + torch.sigmoid(self.alpha_raw) * feedback


class HighwayConnection(InputConnection):
    r"""The input highway connection, a gate between the input and the memory.

    .. math::
        g_t &= \sigma(W_G x_t + \Gamma h_{t-1} + b_G) \\
        v_t &= (1 - g_t) \odot x_t + g_t \odot (U_V h_{t-1})

    ``weight`` stacks :math:`U_V` above :math:`\Gamma`, so that both are one matrix product;
    ``weight_gate`` is :math:`W_G` and ``bias_gate`` is :math:`b_G`.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        recurrent_init: Initialiser,
        generator: Generator | None,
        to: Placement,
    ) -> None:
        super().__init__(input_size, hidden_size, recurrent_init, generator, to)
        self.weight = nn.Parameter(torch.empty(2 * input_size, hidden_size, **to))
        self.weight_gate = nn.Parameter(torch.empty(input_size, input_size, **to))
        self.bias_gate = nn.Parameter(torch.zeros(input_size, **to))
        weights_(self.weight, recurrent_init, hidden_size, generator, rows=input_size)
        uniform_(self.weight_gate, hidden_size**-0.5, generator)

    def prepare(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight_gate, self.bias_gate)

    def feedback(self, h: Tensor) -> Tensor:
        return F.linear(h, self.weight)

    def forward(self, x: Tensor, prepared: Any, feedback: Tensor) -> Tensor:
        u, gamma = feedback.chunk(2, dim=-1)
        g = torch.sigmoid(prepared + gamma)
        return (1 - g) * x + g * u


class ConnectedInput(NamedTuple):
    """The input, the candidate, and the input's part of the connection (``()`` for none)."""

    x: Tensor
    candidate: Tensor
    connection: Any


class ConnectedCell(GatedCell[ConnectedInput, Any]):
    """A `Design` whose gates read what an `InputConnection` makes of input and memory."""

    reference = "kuo2020input"
    design: ClassVar[Design]
    connects: ClassVar[type[InputConnection]]
    recurrent_weights: ClassVar[tuple[str, ...]] = ("connection.weight",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        forget_bias: float | None = None,
        input_init: Initialiser = "uniform",
        recurrent_init: Initialiser = "uniform",
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        to: Placement = {"device": device, "dtype": dtype}
        self.memory_size = hidden_size if self.design.cell_state else 0
        size = hidden_size if self.connects.square else input_size
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
        if forget_bias is not None:
            initial = torch.full((hidden_size,), float(self.design.forget * forget_bias), **to)
            self.bias_forget = nn.Parameter(initial)

    def initial_state(self, batch_size: int) -> Any:
        h = zeros_like_parameters(self, batch_size, self.hidden_size)
        return LSTMState(h, h.clone()) if self.design.cell_state else h

    def write(self, x: Tensor) -> Tensor:
        """The candidate."""
        return F.linear(x, self.weight_candidate)

    def prepare(self, x: Tensor) -> ConnectedInput:
        if self.weight_in is not None:
            x = F.linear(x, self.weight_in)
        return ConnectedInput(x, self.write(x), self.connection.prepare(x))

    def recurrent(self, state: Any) -> Tensor:
        return self.connection.feedback(state.h if self.design.cell_state else state)

    def activate(
        self,
        prepared: ConnectedInput,
        recurrent: Tensor,
        state: Any,
        *,
        candidate: Map = identity,
        memory: Map = identity,
    ) -> tuple[Tensor, Any]:
        v = self.connection(prepared.x, prepared.connection, recurrent)
        gates = torch.sigmoid(F.linear(v, self.weight_gates, self._bias()))
        a = candidate(prepared.candidate)
        return self.design.update(
            gates.chunk(self.design.gates, dim=-1), a, prepared.x, state, memory
        )

    def _bias(self) -> Tensor | None:
        """The biases that the released code has, for all gates at once."""
        if self.bias_forget is None and self.bias_highway is None:
            return None
        zeros = self.weight_gates.new_zeros(self.hidden_size)
        parts = [zeros if b is None else b for b in (self.bias_forget, self.bias_highway)]
        parts += [zeros] * (self.design.gates - 2)
        return torch.cat(parts[: self.design.gates])
