r"""Controllers of the cells that have an external memory: a network that also sees what was read.

Each is the plain network with one more term, :math:`W_r r_t`, where :math:`r_t` is all that the
heads read: :math:`h_t = g(x_t, h_{t-1}, r_t)`.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement
from attractor.cells.gated import PLAIN, Biases, Linear, Sites, Taps
from attractor.cells.init import uniform_
from attractor.errors import InputError, unknown

ControllerKind = Literal["lstm", "gru", "rnn", "ff"]

WriteAddress = Literal["before", "after"]
"""Whether a head finds where to write before the controller moves, from its old h, or after."""


class Controller(nn.Module, ABC):
    """Weights on the input, on what was read and, if it has any memory, on its own old state."""

    gates: ClassVar[int]
    recurrent: ClassVar[bool] = True
    forget: ClassVar[int | None] = None
    """Which gate is a forget gate; its bias starts at 1, all others at 0."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        read_size: int,
        *,
        generator: Generator | None,
        bias: bool = True,
        to: Placement,
    ) -> None:
        super().__init__()
        rows = self.gates * hidden_size
        self.weight_ih = nn.Parameter(torch.empty(rows, input_size, **to))
        self.weight_rh = nn.Parameter(torch.empty(rows, read_size, **to))
        self.weight_hh = (
            nn.Parameter(torch.empty(rows, hidden_size, **to)) if self.recurrent else None
        )
        self.bias = nn.Parameter(torch.zeros(rows, **to)) if bias else None
        for weight in (self.weight_ih, self.weight_rh, self.weight_hh):
            if weight is not None:
                uniform_(weight, hidden_size**-0.5, generator)
        if self.bias is not None and self.forget is not None:
            self.bias.detach().chunk(self.gates)[self.forget].fill_(1.0)

    def prepare(self, x: Tensor, linear: Linear = F.linear) -> Tensor:
        """The input's part of each pre-activation, for all time steps at once."""
        return linear(x, self.weight_ih, self.bias)

    @abstractmethod
    def step(
        self, prepared: Tensor, r: Tensor, h: Tensor, c: Tensor, tap: Taps = PLAIN
    ) -> tuple[Tensor, Tensor]:
        """The next h and c; only an LSTM changes c."""

    def sites(self) -> Sites:
        """What passes through the taps; by default all gates together."""
        rows = (self.weight_ih.shape[0],)
        return Sites(rows, rows if self.recurrent else (), read=rows)

    def biases(self) -> Biases:
        """The biases of the gates."""
        return (self.weight_ih.shape[0] if self.bias is None else self.bias,)


class LSTMController(Controller):
    r"""An LSTM: ``weight_*`` and ``bias`` stack i, f, c, o.

    .. math::
        i_t, f_t, o_t &= \sigma(W_x x_t + W_h h_{t-1} + W_r r_t + b) \\
        \tilde c_t &= \tanh(W_x x_t + W_h h_{t-1} + W_r r_t + b) \\
        c_t &= f_t \odot c_{t-1} + i_t \odot \tilde c_t \\
        h_t &= o_t \odot \tanh(c_t)
    """

    gates = 4
    forget = 1

    def step(
        self, prepared: Tensor, r: Tensor, h: Tensor, c: Tensor, tap: Taps = PLAIN
    ) -> tuple[Tensor, Tensor]:
        assert self.weight_hh is not None
        read, again = tap.read(F.linear(r, self.weight_rh)), tap.h(F.linear(h, self.weight_hh))
        i, f, a, o = (tap.x(prepared) + read + again).chunk(4, dim=-1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * tap.candidate(torch.tanh(a))
        return torch.sigmoid(o) * torch.tanh(tap.memory(c)), c

    def sites(self) -> Sites:
        return super().sites()._replace(memory=self.weight_ih.shape[0] // self.gates)


class GRUController(Controller):
    r"""A GRU whose reset gate acts on h alone: ``weight_*`` and ``bias`` stack the reset gate q,
    the update gate z, and h.

    .. math::
        q_t, z_t &= \sigma(W_x x_t + W_h h_{t-1} + W_r r_t + b) \\
        \tilde h_t &= \tanh(W_x x_t + W_h (q_t \odot h_{t-1}) + W_r r_t + b) \\
        h_t &= (1 - z_t) \odot h_{t-1} + z_t \odot \tilde h_t
    """

    gates = 3

    def step(
        self, prepared: Tensor, r: Tensor, h: Tensor, c: Tensor, tap: Taps = PLAIN
    ) -> tuple[Tensor, Tensor]:
        assert self.weight_hh is not None
        n = 2 * h.shape[-1]
        given = tap.x(prepared) + tap.read(F.linear(r, self.weight_rh))
        gates = torch.sigmoid(given[..., :n] + tap.h(F.linear(h, self.weight_hh[:n])))
        q, z = gates.chunk(2, dim=-1)
        inner = tap.inner(F.linear(q * h, self.weight_hh[n:]))
        return (1 - z) * h + z * tap.candidate(torch.tanh(given[..., n:] + inner)), c

    def sites(self) -> Sites:
        n = self.weight_ih.shape[0] // self.gates
        return Sites((2 * n, n), (2 * n,), inner=(n,), read=(2 * n, n))


class RNNController(Controller):
    r"""A plain recurrent network.

    .. math::
        h_t = \tanh(W_x x_t + W_h h_{t-1} + W_r r_t + b)
    """

    gates = 1

    def step(
        self, prepared: Tensor, r: Tensor, h: Tensor, c: Tensor, tap: Taps = PLAIN
    ) -> tuple[Tensor, Tensor]:
        assert self.weight_hh is not None
        read, again = tap.read(F.linear(r, self.weight_rh)), tap.h(F.linear(h, self.weight_hh))
        return tap.candidate(torch.tanh(tap.x(prepared) + read + again)).to(h.dtype), c


class FeedForwardController(Controller):
    r"""One layer that does not see its own past: all memory is in the memory.

    .. math::
        h_t = \tanh(W_x x_t + W_r r_t + b)
    """

    gates = 1
    recurrent = False

    def step(
        self, prepared: Tensor, r: Tensor, h: Tensor, c: Tensor, tap: Taps = PLAIN
    ) -> tuple[Tensor, Tensor]:
        sums = tap.x(prepared) + tap.read(F.linear(r, self.weight_rh))
        return tap.candidate(torch.tanh(sums)).to(h.dtype), c


CONTROLLERS: dict[str, type[Controller]] = {
    "lstm": LSTMController,
    "gru": GRUController,
    "rnn": RNNController,
    "ff": FeedForwardController,
}
"""The controllers by name."""


def check_write_address(owner: type, value: WriteAddress) -> WriteAddress:
    """Raise unless it is one of the two."""
    if value not in ("before", "after"):
        raise InputError(
            f"{owner.__name__} expects write_address 'before' or 'after', but got {value!r}."
        )
    return value


def controller_class(kind: str) -> type[Controller]:
    """The controller of that name."""
    if kind not in CONTROLLERS:
        raise unknown("controller", kind, CONTROLLERS)
    return CONTROLLERS[kind]
