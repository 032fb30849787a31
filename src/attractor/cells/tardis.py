"""TARDIS: an LSTM with wormhole connections."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement, positive, zeros_like_parameters
from attractor.cells.gated import PLAIN, GatedCell, Linear, Sites, Taps
from attractor.cells.init import uniform_
from attractor.cells.memory import (
    choose,
    gumbel,
    logistic,
    one_hot_of_largest,
    overwrite,
    read,
    standardise,
    straight_through,
    wide,
)
from attractor.errors import InputError, unknown

ESTIMATORS = ("gumbel", "reinforce")


class TARDISState(NamedTuple):
    """The LSTM's state, what the cells hold, and how they were used.

    ``usage`` counts the reads of each cell; ``read`` is the one-hot of the last cell read, zero
    before the first; ``r`` is what was read there, address and content; ``filled`` is how many
    cells have been written; ``log_prob`` is the logarithm of the probability of the last read,
    for REINFORCE.
    """

    h: Tensor
    c: Tensor
    content: Tensor
    usage: Tensor
    read: Tensor
    r: Tensor
    filled: Tensor
    log_prob: Tensor


class TARDISInput(NamedTuple):
    """The input's part of what is computed, and in training the noise of reads and gates."""

    attention: Tensor
    controller: Tensor
    gumbel: Tensor | tuple[()]
    logistic: Tensor | tuple[()]


class TARDISCell(GatedCell[TARDISInput, TARDISState]):
    r"""TARDIS: an LSTM that keeps projections of its old states and reads one at every step.

    With :math:`M_{t-1} = [A; C_{t-1}]`, fixed addresses beside what the cells hold, and the usage
    :math:`u_t`, the normalised count of the reads of each cell so far, a step reads one cell:

    .. math::
        u_t &= \mathrm{norm}\Big(\sum_{i=1}^{t-1} w^r_i\Big) \\
        \pi_t[i] &= a^\top \tanh(W^\gamma_h h_{t-1} + W^\gamma_x x_t + W^\gamma_m M_{t-1}[i]
            + W^\gamma_u u_t + b^\gamma) - 100 \, [i \text{ was read last}] \\
        \tau_t &= \mathrm{softplus}(w^{\tau\top} h_{t-1} + b^\tau) + 1 \\
        \bar w^r_t &= \mathrm{softmax}((\pi_t + \xi_t) \tau_t) \\
        w^r_t &= \text{one-hot of the largest of } \bar w^r_t \\
        r_t &= M_{t-1}^\top w^r_t

    then moves, with two reset gates that let the model store pieces of a sequence:

    .. math::
        f_t, i_t, o_t &= \sigma(W_h h_{t-1} + W_x x_t + W_r r_t + b) \\
        \alpha_t, \beta_t &= \sigma\big((w_h^\top h_{t-1} + w_x^\top x_t + w_r^\top r_t + b
            + \ell_t) / 0.3\big) \\
        \tilde c_t &= \tanh(\alpha_t W_h h_{t-1} + W_x x_t + \beta_t W_r r_t + b) \\
        c_t &= f_t \odot c_{t-1} + i_t \odot \tilde c_t \\
        h_t &= o_t \odot \tanh(c_t)

    and writes a projection of the new state into the next empty cell, or, once the k cells are
    full, into the cell that it read:

    .. math::
        C_t[j] &= W_m h_t + b_m, \quad j = t \text{ if } t \le k
            \text{, else the largest of } w^r_t \\
        y_t &= \tanh(W^g_h h_t + W^g_r r_t + b^g)

    With ``growing`` the memory begins with no cell and every step adds one, up to k: only cells
    that have been written can be read, :math:`r_1 = 0`, and the usage is normalised over them.

    The output :math:`y_t = g(h_t, r_t)` is the layer below the softmax in the thesis, because
    predictions need both. :math:`\xi_t` is Gumbel and :math:`\ell_t` logistic noise, drawn in
    training; in evaluation both are zero.

    With ``estimator="gumbel"`` the gradient of :math:`w^r_t` is that of :math:`\bar w^r_t`
    (straight through). With ``"reinforce"`` the cell is drawn from
    :math:`\mathrm{softmax}(\pi_t)` and no gradient passes through the draw: train the attention
    with `attractor.cells.memory.reinforce` and ``log_prob``, which the state has for every step. In
    evaluation the reads are fixed choices, and gradients are exact.

    ``weight_ih``, ``weight_hh``, ``weight_rh`` and ``bias`` stack i, f, c, o, then α and β.

    Args:
        input_size: features in :math:`x_t`.
        hidden_size: units in :math:`h_t` and in the output.
        cells: k, places in the memory.
        address_size: features of a place's address.
        content_size: features of a place's content; the thesis takes fewer than `hidden_size`.
        attention_size: hidden units of the network that chooses where to read.
        estimator: ``"gumbel"`` (straight through) or ``"reinforce"``.
        growing: have only as many cells as steps were taken, up to `cells`, so that none is read
            before it is written; choose as many `cells` as the longest sequence has steps, and none
            is ever written over.
        reset_gates: have :math:`\alpha_t` and :math:`\beta_t`; without them both are 1.
        bias: learn the biases.
        generator: draws the initial weights and the addresses; ``None`` means torch's default
            generator.

    Shape:
        x ``(batch, input_size)``; the state is h and c ``(batch, hidden_size)``, content
        ``(batch, cells, content_size)``, usage and read ``(batch, cells)``, r
        ``(batch, address_size + content_size)``, filled and log_prob ``(batch,)``; the output is
        ``(batch, hidden_size)``.

    Example:
        >>> cell = TARDISCell(3, 8, cells=4)
        >>> y, state = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> y.shape, state.content.shape, state.filled
        (torch.Size([2, 8]), torch.Size([2, 4, 32]), tensor([1., 1.]))

    Departs from the paper: where the thesis prints :math:`h_t` in the attention and in
    :math:`\tau`, it can only be :math:`h_{t-1}`. Left open there and chosen here: half of the
    features of each address are drawn from N(0, 1), the others are zero; empty cells may be read;
    no gradient passes through the usage or through the subtracted 100; the size of the
    attention; the tanh of :math:`y_t`; the forget bias starts at 1. Of a memory that grows the
    thesis says only that it is possible; here its room is set aside at once.

    References:
        Gulcehre et al. (2017), Memory augmented neural networks with wormhole connections,
        arXiv:1701.08718; Chandar (2020), chapter 3.
    """

    reference = "gulcehre2017memory"
    fixed_state = ("usage", "read", "r", "filled", "log_prob")
    address: Tensor
    without_past = False
    """Whether answers come from the read and the input alone: see `read_alone`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        cells: int = 16,
        address_size: int = 4,
        content_size: int = 32,
        attention_size: int = 64,
        estimator: Literal["gumbel", "reinforce"] = "gumbel",
        growing: bool = False,
        reset_gates: bool = True,
        bias: bool = True,
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        self.cells = positive(type(self), "cells", cells)
        self.address_size = positive(type(self), "address_size", address_size)
        self.content_size = positive(type(self), "content_size", content_size)
        self.attention_size = positive(type(self), "attention_size", attention_size)
        if estimator not in ESTIMATORS:
            raise unknown("estimator of TARDISCell", estimator, ESTIMATORS)
        self.estimator = estimator
        self.growing = growing
        self.reset_gates = reset_gates
        to: Placement = {"device": device, "dtype": dtype}
        d, q = attention_size, address_size + content_size
        rows = 4 * hidden_size + (2 if reset_gates else 0)
        self.register_buffer("address", sparse_addresses(cells, address_size, generator, to))
        self.attention_ih = nn.Parameter(torch.empty(d, input_size, **to))
        self.attention_hh = nn.Parameter(torch.empty(d, hidden_size, **to))
        self.attention_mh = nn.Parameter(torch.empty(d, q, **to))
        self.attention_uh = nn.Parameter(torch.empty(d, cells, **to))
        self.attention_bias = nn.Parameter(torch.zeros(d, **to)) if bias else None
        self.attention_out = nn.Parameter(torch.empty(1, d, **to))
        self.weight_ih = nn.Parameter(torch.empty(rows, input_size, **to))
        self.weight_hh = nn.Parameter(torch.empty(rows, hidden_size, **to))
        self.weight_rh = nn.Parameter(torch.empty(rows, q, **to))
        self.bias = nn.Parameter(torch.zeros(rows, **to)) if bias else None
        self.content_hh = nn.Parameter(torch.empty(content_size, hidden_size, **to))
        self.content_bias = nn.Parameter(torch.zeros(content_size, **to)) if bias else None
        self.output_hh = nn.Parameter(torch.empty(hidden_size, hidden_size, **to))
        self.output_rh = nn.Parameter(torch.empty(hidden_size, q, **to))
        self.output_bias = nn.Parameter(torch.zeros(hidden_size, **to)) if bias else None
        learned = estimator == "gumbel"
        self.inverse_temperature_hh = (
            nn.Parameter(torch.empty(1, hidden_size, **to)) if learned else None
        )
        self.inverse_temperature_bias = (
            nn.Parameter(torch.zeros(1, **to)) if learned and bias else None
        )
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                fan_in = d if name == "attention_out" else hidden_size
                uniform_(parameter, fan_in**-0.5, generator)
        if self.bias is not None:
            self.bias.detach()[hidden_size : 2 * hidden_size].fill_(1.0)

    def initial_state(self, batch_size: int) -> TARDISState:
        shapes: list[tuple[int, ...]] = [
            (self.hidden_size,),
            (self.hidden_size,),
            (self.cells, self.content_size),
            (self.cells,),
            (self.cells,),
            (self.address_size + self.content_size,),
            (),
            (),
        ]
        state = TARDISState(*(zeros_like_parameters(self, batch_size, *shape) for shape in shapes))
        # half precision cannot count the reads of a long sequence, nor many cells
        return state._replace(usage=wide(state.usage), filled=wide(state.filled))

    def sites(self) -> Sites:
        rows = (self.weight_ih.shape[0],)
        return Sites(rows, rows, memory=self.hidden_size, read=rows)

    def prepare(self, x: Tensor, linear: Linear = F.linear) -> TARDISInput:
        steps = x.shape[:2]
        return TARDISInput(
            F.linear(x, self.attention_ih, self.attention_bias),
            linear(x, self.weight_ih, self.bias),
            gumbel(*steps, self.cells, like=x) if self.training else (),
            logistic(*steps, 2, like=x) if self.training and self.reset_gates else (),
        )

    def step(
        self, prepared: TARDISInput, state: TARDISState, tap: Taps = PLAIN
    ) -> tuple[Tensor, TARDISState]:
        filled = state.filled.unsqueeze(-1)
        there = torch.arange(self.cells, device=filled.device) < filled if self.growing else None
        pi = self._logits(prepared.attention, state, there)
        w, hard, log_prob = self._choose(pi, prepared.gumbel, state.h)
        if there is not None:  # nothing is read of a memory that has no cell yet
            w, hard = w * there, hard * there
            log_prob = torch.where(there[..., 0], log_prob, 0.0)
        r = torch.cat([w @ self.address, read(state.content, w.unsqueeze(1)).squeeze(1)], -1)
        h, c = self._controller(prepared, r, state, tap)
        seen = h
        if self.without_past:
            fresh = state._replace(h=torch.zeros_like(state.h), c=torch.zeros_like(state.c))
            seen, _ = self._controller(prepared, r, fresh, tap)
        y = torch.tanh(
            F.linear(seen, self.output_hh, self.output_bias) + F.linear(r, self.output_rh)
        )
        y = y.to(state.h.dtype)

        empty = (torch.arange(self.cells, device=filled.device) == filled).to(w.dtype)
        written = torch.where(filled < self.cells, empty, w)
        micro = F.linear(h, self.content_hh, self.content_bias)
        content = overwrite(state.content, written, micro)
        filled = (state.filled + 1).clamp_max(self.cells)
        return y, TARDISState(h, c, content, state.usage + hard, hard, r, filled, log_prob)

    def _logits(self, prepared: Tensor, state: TARDISState, there: Tensor | None = None) -> Tensor:
        """How much the model wants to read each cell, of those that are there."""
        u = standardise(state.usage, eps=1e-5, there=there).to(state.h.dtype)
        query = prepared + F.linear(state.h, self.attention_hh) + F.linear(u, self.attention_uh)
        address_mh, content_mh = torch.split(
            self.attention_mh, [self.address_size, self.content_size], dim=-1
        )
        cells = F.linear(self.address, address_mh) + F.linear(state.content, content_mh)
        # not a matmul, which autocast would round: near ties then change which cell is read
        pi = (torch.tanh(wide(query.unsqueeze(-2)) + cells) * self.attention_out).sum(-1)
        pi = pi - 100 * state.read
        return pi if there is None else torch.where(there, pi, -1e9)

    def _choose(
        self, pi: Tensor, noise: Tensor | tuple[()], h: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The weights of the read, their plain one-hot, and its log-probability."""
        xi = noise if isinstance(noise, Tensor) else None
        if xi is None or self.inverse_temperature_hh is None:
            hard, log_prob = choose(pi, xi)
            w = hard
        else:
            tau = 1 + F.softplus(
                F.linear(h, self.inverse_temperature_hh, self.inverse_temperature_bias)
            )
            log_soft = torch.log_softmax((pi + xi) * tau, -1)
            hard = one_hot_of_largest(pi + xi)
            w = straight_through(hard, log_soft.exp())
            # the largest of the logits with Gumbel noise is a draw from their softmax
            log_prob = (hard * torch.log_softmax(pi, -1)).sum(-1)
        return w.to(h.dtype), hard.to(h.dtype), log_prob.to(h.dtype)

    def _controller(
        self, prepared: TARDISInput, r: Tensor, state: TARDISState, tap: Taps = PLAIN
    ) -> tuple[Tensor, Tensor]:
        """The LSTM, whose candidate sees its old state and the read through the reset gates."""
        n = self.hidden_size
        from_x, from_h = tap.x(prepared.controller), tap.h(F.linear(state.h, self.weight_hh))
        from_r = tap.read(F.linear(r, self.weight_rh))
        gates = from_x + from_h + from_r
        i, f, candidate, o = gates[..., : 4 * n].chunk(4, dim=-1)
        if self.reset_gates:
            logits = gates[..., 4 * n :]
            if isinstance(prepared.logistic, Tensor):
                logits = logits + prepared.logistic
            alpha, beta = torch.sigmoid(logits / 0.3).chunk(2, dim=-1)
            x, h, r = (part[..., 2 * n : 3 * n] for part in (from_x, from_h, from_r))
            candidate = alpha * h + x + beta * r
        c = torch.sigmoid(f) * state.c + torch.sigmoid(i) * tap.candidate(torch.tanh(candidate))
        return torch.sigmoid(o) * torch.tanh(tap.memory(c)), c

    def extra_repr(self) -> str:
        memory = f"address_size={self.address_size}, content_size={self.content_size}"
        how = f"estimator={self.estimator!r}" + (", growing=True" if self.growing else "")
        how += "" if self.reset_gates else ", reset_gates=False"
        return f"{super().extra_repr()}, cells={self.cells}, {memory}, {how}"


@contextmanager
def read_alone(module: nn.Module, *, inputs: bool = False) -> Iterator[None]:
    r"""Let every TARDIS of a model answer from what it read, not from its state, for a while.

    .. math::
        y_t = \tanh(W^g_r r_t + b^g)

    or, with `inputs`, from what it read and the input, as :math:`p(y_t \mid r_t, x_t)` has it:

    .. math::
        y_t = \tanh(W^g_h \hat h_t + W^g_r r_t + b^g)

    where :math:`\hat h_t` is :math:`h_t` as the equations give it for
    :math:`h_{t-1} = c_{t-1} = 0`. A model that was trained to answer from :math:`h_t` and
    :math:`r_t` is measured so, to see how much of what it knows is in its memory. The state goes on
    as ever, and so do the choices of what to read.

    Args:
        module: a cell, or whatever holds some.
        inputs: answer from the input of the step too.

    Example:
        >>> cell = TARDISCell(3, 8).eval()
        >>> state = cell.initial_state(2)
        >>> with read_alone(cell):
        ...     alone, _ = cell(torch.ones(2, 3), state)
        >>> bool((alone == cell(torch.ones(2, 3), state)[0]).any())
        False

    Departs from the paper: which says that it tests with p(y | r, x) a model that answers by
    equation 3.11, g(h, r), but not how x comes into it. The output has no way from x but through h,
    so with `inputs` h is that of a controller without a past; without them the weights of h
    in g are zero, and x is seen only through the choice of r.

    References:
        Chandar (2020), sections 3.6 and 3.7.1.
    """
    cells = [one for one in module.modules() if isinstance(one, TARDISCell)]
    if not cells:
        raise InputError(
            f"expected a model with a TARDIS in it, but {type(module).__name__} has none. "
            "Try cell='tardis'."
        )
    kept = [(cell.output_hh.detach().clone(), cell.without_past) for cell in cells]
    try:
        for cell in cells:
            if inputs:
                cell.without_past = True
            else:
                cell.output_hh.detach().zero_()
        yield
    finally:
        for cell, (weight, before) in zip(cells, kept, strict=True):
            cell.output_hh.detach().copy_(weight)
            cell.without_past = before


def sparse_addresses(cells: int, size: int, generator: Generator | None, to: Placement) -> Tensor:
    """Random sparse vectors ``(cells, size)``: half of each row is drawn from N(0, 1), rounded up.

    Example:
        >>> addresses = sparse_addresses(5, 4, None, {"device": None, "dtype": None})
        >>> addresses.count_nonzero(-1)
        tensor([2, 2, 2, 2, 2])
    """
    wanted = torch.empty(cells, size, **to)
    device = wanted.device if generator is None else generator.device
    order = torch.rand(cells, size, generator=generator, device=device).argsort(-1)
    values = torch.randn(cells, size, generator=generator, device=device)
    return torch.where(order < (size + 1) // 2, values, 0.0).to(wanted)
