"""Neural Turing machine."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement, positive, zeros_like_parameters
from attractor.cells.gated import PLAIN, Biases, GatedCell, Linear, Sites, Taps
from attractor.cells.init import uniform_
from attractor.cells.memory import cosine, erase_and_add, read, sharpen, shift, unit, wide
from attractor.cells.memory.controllers import (
    ControllerKind,
    WriteAddress,
    check_write_address,
    controller_class,
)
from attractor.errors import InputError


class NTMState(NamedTuple):
    """The controller's state, the memory, and where each head was."""

    h: Tensor
    c: Tensor
    memory: Tensor
    read: Tensor
    write: Tensor


class NTMInput(NamedTuple):
    """The input's part of what the controller, the read heads and the write heads compute."""

    controller: Tensor
    read: Tensor
    write: Tensor


class NTMCell(GatedCell[NTMInput, NTMState]):
    r"""Neural Turing machine: a controller with heads that read and write a memory softly.

    Each head finds its weights by content, mixes them with its last weights, moves them round
    the memory and sharpens them:

    .. math::
        k_t &= W_k [x_t, h] + b_k \\
        w^c_t[i] &= \mathrm{softmax}_i(\beta_t \cos(k_t, M_{t-1}[i])) \\
        w^g_t &= g_t w^c_t + (1 - g_t) w_{t-1} \\
        \tilde w_t[i] &= \sum_j w^g_t[j] \, s_t[i - j] \\
        w_t[i] &= \tilde w_t[i]^{\gamma_t} / \sum_j \tilde w_t[j]^{\gamma_t}

    with :math:`\beta_t = \mathrm{softplus}(\cdot)`, :math:`g_t = \sigma(\cdot)`,
    :math:`s_t = \mathrm{softmax}(\cdot)` and :math:`\gamma_t = 1 + \mathrm{softplus}(\cdot)`, each
    of a linear map of the same two. A step reads, lets the controller see what was read, and
    writes:

    .. math::
        r_t &= M_{t-1}^\top w^r_t \\
        h_t &= g(x_t, h_{t-1}, r_t) \\
        M_t[i] &= M_{t-1}[i] \odot (1 - w^w_t[i] e_t) + w^w_t[i] a_t

    Read heads see :math:`x_t` and :math:`h_{t-1}`, write heads :math:`x_t` and :math:`h_t`, or
    with ``write_address="before"`` find their weights from :math:`x_t` and :math:`h_{t-1}` too;
    :math:`e_t = \sigma(\cdot)` and :math:`a_t` is linear. Several heads of a kind address the
    memory as the last step left it; all erase before any adds; reads are concatenated.

    ``read_ih``, ``read_hh`` and ``read_bias`` stack k, β, g, s, γ of the first read head, then of
    the next; ``write_*`` likewise with e and a after γ.

    Args:
        input_size: features in :math:`x_t`.
        hidden_size: units in :math:`h_t`.
        cells: places in the memory.
        cell_size: features of a place.
        read_heads: heads that read.
        write_heads: heads that write.
        shift_width: neighbouring shifts a head chooses from; 3 means -1, 0 and 1.
        controller: ``"lstm"``, ``"gru"``, ``"rnn"`` for a plain recurrent network, or ``"ff"`` for
            one feed-forward layer.
        write_address: write heads find their weights ``"after"`` the controller has moved, from
            :math:`h_t`, or ``"before"`` it, from :math:`h_{t-1}`, as the thesis has it.
        bias: learn the biases.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``; the state is h and c ``(batch, hidden_size)``, memory
        ``(batch, cells, cell_size)``, read and write ``(batch, heads, cells)``, where c is used
        by the LSTM controller only; the output is the new h.

    Example:
        >>> cell = NTMCell(3, 8, cells=16, cell_size=5, read_heads=2)
        >>> y, state = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> y.shape, state.memory.shape, state.read.shape
        (torch.Size([2, 8]), torch.Size([2, 16, 5]), torch.Size([2, 2, 16]))

    Departs from the paper: the write heads see :math:`h_t`, as in Graves et al.; the thesis's
    equation 2.53, in which all heads derive their keys from :math:`h_{t-1}`, is
    ``write_address="before"``. It leaves open what :math:`e_t` reads (here :math:`h_t`, as
    :math:`a_t` in equation 2.51 does), how a sequence starts (here every cell
    holds 1e-6 and every head is on the first cell: heads spread evenly over equal cells could
    never tell them apart) and the least length in the cosine (1e-8). The LSTM controller's forget
    bias starts at 1.

    References:
        Graves et al. (2014), Neural Turing machines, arXiv:1410.5401; Chandar (2020), equations
        2.48 to 2.57.
    """

    reference = "graves2014neural"
    recurrent_weights = ("controller.weight_hh",)
    fixed_state = ("read", "write")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        cells: int = 128,
        cell_size: int = 20,
        read_heads: int = 1,
        write_heads: int = 1,
        shift_width: int = 3,
        controller: ControllerKind = "lstm",
        write_address: WriteAddress = "after",
        bias: bool = True,
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        self.cells = positive(type(self), "cells", cells)
        self.cell_size = positive(type(self), "cell_size", cell_size)
        self.read_heads = positive(type(self), "read_heads", read_heads)
        self.write_heads = positive(type(self), "write_heads", write_heads)
        self.shift_width = positive(type(self), "shift_width", shift_width)
        if shift_width > cells:
            raise InputError(
                f"NTMCell expects shift_width of at most cells={cells}, the number of different "
                f"shifts, but got {shift_width}."
            )
        self.write_address = check_write_address(type(self), write_address)
        to: Placement = {"device": device, "dtype": dtype}
        q = cell_size
        self.controller = controller_class(controller)(
            input_size, hidden_size, read_heads * q, generator=generator, bias=bias, to=to
        )
        rows = read_heads * sum(self._address_sizes)
        self.read_ih = nn.Parameter(torch.empty(rows, input_size, **to))
        self.read_hh = nn.Parameter(torch.empty(rows, hidden_size, **to))
        self.read_bias = nn.Parameter(torch.zeros(rows, **to)) if bias else None
        rows = write_heads * (sum(self._address_sizes) + 2 * q)
        self.write_ih = nn.Parameter(torch.empty(rows, input_size, **to))
        self.write_hh = nn.Parameter(torch.empty(rows, hidden_size, **to))
        self.write_bias = nn.Parameter(torch.zeros(rows, **to)) if bias else None
        for weight in (self.read_ih, self.read_hh, self.write_ih, self.write_hh):
            uniform_(weight, hidden_size**-0.5, generator)

    @property
    def _address_sizes(self) -> list[int]:
        """Rows of k, β, g, s, γ."""
        return [self.cell_size, 1, 1, self.shift_width, 1]

    def initial_state(self, batch_size: int) -> NTMState:
        h = zeros_like_parameters(self, batch_size, self.hidden_size)
        memory = zeros_like_parameters(self, batch_size, self.cells, self.cell_size) + 1e-6
        read, write = (
            F.pad(zeros_like_parameters(self, batch_size, heads, 1) + 1, (0, self.cells - 1))
            for heads in (self.read_heads, self.write_heads)
        )
        return NTMState(h, torch.zeros_like(h), memory, read, write)

    def sites(self) -> Sites:
        return self.controller.sites()

    def biases(self) -> Biases:
        return self.controller.biases()

    def prepare(self, x: Tensor, linear: Linear = F.linear) -> NTMInput:
        return NTMInput(
            self.controller.prepare(x, linear),
            F.linear(x, self.read_ih, self.read_bias),
            F.linear(x, self.write_ih, self.write_bias),
        )

    def step(
        self, prepared: NTMInput, state: NTMState, tap: Taps = PLAIN
    ) -> tuple[Tensor, NTMState]:
        h, c, memory, w_r, w_w = state
        heads = prepared.read + F.linear(h, self.read_hh)
        directions = unit(memory, floor=1e-8)
        w_r = self._address(torch.unflatten(heads, -1, (self.read_heads, -1)), directions, w_r)
        r = read(memory, w_r).flatten(-2)
        before = h
        h, c = self.controller.step(prepared.controller, r, h, c, tap)
        address, e, a = self._written(prepared.write, h)
        if self.write_address == "before":
            address, _, _ = self._written(prepared.write, before)
        w_w = self._address(address, directions, w_w)
        memory = erase_and_add(memory, w_w, torch.sigmoid(e), a)
        return h, NTMState(h, c, memory, w_r, w_w)

    def _written(self, prepared: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        """What the write heads make of h: how to address, what to erase and what to add."""
        heads = torch.unflatten(prepared + F.linear(h, self.write_hh), -1, (self.write_heads, -1))
        q = self.cell_size
        return torch.split(heads, [sum(self._address_sizes), q, q], dim=-1)

    def _address(self, heads: Tensor, directions: Tensor, last: Tensor) -> Tensor:
        """The weights of heads ``(batch, heads, rows)``, ``(batch, heads, cells)``."""
        k, beta, g, s, gamma = torch.split(wide(heads), self._address_sizes, dim=-1)
        w_c = torch.softmax(F.softplus(beta) * cosine(k, directions, floor=1e-8), -1)
        w_g = torch.lerp(wide(last), w_c, torch.sigmoid(g))
        w = sharpen(shift(w_g, torch.softmax(s, -1)), 1 + F.softplus(gamma))
        return w.to(last.dtype)

    def extra_repr(self) -> str:
        heads = f"read_heads={self.read_heads}, write_heads={self.write_heads}"
        return f"{super().extra_repr()}, cells={self.cells}, cell_size={self.cell_size}, {heads}"
