"""Dynamic neural Turing machine."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement, Shared, positive, zeros_like_parameters
from attractor.cells.gated import PLAIN, Biases, GatedCell, Linear, Sites, Taps
from attractor.cells.init import uniform_
from attractor.cells.memory import choose, cosine, erase_and_add, gumbel, read, unit, wide
from attractor.cells.memory.controllers import (
    ControllerKind,
    WriteAddress,
    check_write_address,
    controller_class,
)
from attractor.errors import InputError


class DNTMState(NamedTuple):
    """The controller's state, what the cells hold, and the average logits of the two heads.

    ``log_prob`` is the logarithm of the probability of the cells that were chosen at this step,
    for REINFORCE; zero with continuous addressing.
    """

    h: Tensor
    c: Tensor
    content: Tensor
    read_average: Tensor
    write_average: Tensor
    log_prob: Tensor


class DNTMInput(NamedTuple):
    """The input's part of what is computed, and the noise of the choices, if there are any.

    ``soft`` is one where a batch is addressed continuously for once; nothing without a schedule.
    """

    controller: Tensor
    read: Tensor
    write: Tensor
    content: Tensor
    noise: Tensor | tuple[()]
    soft: Shared = Shared(None)


class View(NamedTuple):
    """The memory as the heads of a step see it, and whether for once they see all of it."""

    memory: Tensor
    directions: Tensor
    soft: Tensor | None


class DNTMCell(GatedCell[DNTMInput, DNTMState]):
    r"""Dynamic neural Turing machine: every cell has a learned address beside its content.

    The memory is :math:`M_t = [A; C_t]`; a step writes to C only. Each of the two heads has a key
    :math:`k_t`, a strength :math:`\beta_t` and a gate :math:`\gamma_t`, by which it prefers the
    cells that it used least recently:

    .. math::
        z_t[i] &= \beta_t \cos(k_t, M_{t-1}[i]) \\
        w_t &= \mathrm{softmax}(z_t - \gamma_t v_{t-1}) \\
        v_t &= 0.1 \, v_{t-1} + 0.9 \, z_t

    A step reads, lets the controller see what was read, and writes:

    .. math::
        r_t &= M_{t-1}^\top w^r_t \\
        h_t &= g(x_t, h_{t-1}, r_t) \\
        \alpha_t &= \sigma(W_\alpha [x_t, h_t] + b_\alpha) \\
        c_t &= \mathrm{ReLU}(W_m h_t + \alpha_t W_x x_t) \\
        C_t[i] &= C_{t-1}[i] \odot (1 - w^w_t[i] e_t) + w^w_t[i] c_t

    The read head sees :math:`x_t` and :math:`h_{t-1}`, the write head :math:`x_t` and
    :math:`h_t`, or with ``write_address="before"`` finds its weights from :math:`x_t` and
    :math:`h_{t-1}` too; :math:`k_t` is linear, :math:`\beta_t = 1 + \mathrm{softplus}(\cdot)`,
    :math:`\gamma_t = \sigma(\cdot)` and :math:`e_t = \sigma(\cdot)`. The last cell is for no
    operation: it can be chosen, but reads as nothing and is never written.

    With ``discrete=True`` each head uses one cell: in training one drawn from :math:`w_t`, in
    evaluation the likeliest. No gradient passes through a choice; train the heads with
    `attractor.cells.memory.reinforce` and ``log_prob``, which the state has for every step. The
    attribute ``discrete`` may be set later, to train with continuous addressing first. With
    ``anneal`` the cell goes over to discrete addressing by itself: each batch of its training is
    addressed continuously with the probability :math:`1 / \sqrt{1 + n}`, where n is the number of
    batches so far over ``anneal``, rounded down. The buffer ``batches`` counts them.

    With several ``hops`` each head looks more than once before it acts, each time for what it has
    just read as well:

    .. math::
        k^{j+1}_t = k^j_t + M_{t-1}^\top w^j_t

    The last look is the one that counts, also in :math:`v_t`; the probabilities of all choices
    multiply.

    ``read_ih``, ``read_hh`` and ``read_bias`` stack k, β, γ; ``write_*`` k, β, γ, e, α.

    Args:
        input_size: features in :math:`x_t`.
        hidden_size: units in :math:`h_t`.
        cells: places in the memory, the one for no operation included.
        address_size: features of a place's address.
        content_size: features of a place's content.
        controller: ``"gru"``, ``"lstm"``, ``"rnn"`` for a plain recurrent network, or ``"ff"`` for
            one feed-forward layer.
        write_address: the write head finds its weights ``"after"`` the controller has moved, from
            :math:`h_t`, or ``"before"`` it, from :math:`h_{t-1}`, as the thesis has it.
        bias: learn the biases.
        discrete: one cell at a time.
        anneal: from continuous to discrete addressing, with a new probability after so many batches
            of training; ``None`` is discrete from the start. It needs ``discrete=True``.
        hops: looks of a head at each step.
        lru: prefer the least recently used cells; without it :math:`\gamma_t = 0`.
        nop: the last cell is for no operation.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``; the state is h and c ``(batch, hidden_size)``, content
        ``(batch, cells, content_size)``, the two averages ``(batch, cells)`` and log_prob
        ``(batch,)``, where c is used by the LSTM controller only; the output is the new h.

    Example:
        >>> cell = DNTMCell(3, 8, cells=10, discrete=True)
        >>> y, state = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> y.shape, state.content.shape, state.log_prob.shape
        (torch.Size([2, 8]), torch.Size([2, 10, 8]), torch.Size([2]))

    Departs from the paper: the write head sees :math:`h_t`; the thesis's equation 2.65, in which
    both heads derive their keys from :math:`h_{t-1}`, is ``write_address="before"``. Several looks
    at each step are mentioned there without equations: these are the hops of Sukhbaatar et al.
    (2015), which it names; the schedule is that of Gulcehre et al. The authors' released code
    averages as .96 and .04 and subtracts the average before scaling by :math:`\beta_t`. Left open
    there and chosen here: what :math:`e_t` reads (:math:`h_t`, as :math:`\alpha_t` and :math:`c_t`
    do), the least length in the cosine (1e-4), a moving average for each head, and addresses that
    start uniform in ±1.

    References:
        Gulcehre et al. (2016), Dynamic neural Turing machine with soft and hard addressing
        schemes, arXiv:1607.00036; Chandar (2020), equations 2.58 to 2.69.
    """

    reference = "gulcehre2016dynamic"
    batches: Tensor | None
    recurrent_weights = ("controller.weight_hh",)
    fixed_state = ("read_average", "write_average", "log_prob")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        cells: int = 100,
        address_size: int = 8,
        content_size: int = 8,
        controller: ControllerKind = "gru",
        write_address: WriteAddress = "after",
        bias: bool = True,
        discrete: bool = False,
        anneal: int | None = None,
        hops: int = 1,
        lru: bool = True,
        nop: bool = True,
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        self.cells = positive(type(self), "cells", cells)
        self.address_size = positive(type(self), "address_size", address_size)
        self.content_size = positive(type(self), "content_size", content_size)
        if nop and cells < 2:
            raise InputError(
                "DNTMCell expects at least cells=2 when one of them is for no operation, but got "
                f"cells={cells}. Try nop=False or more cells."
            )
        self.write_address = check_write_address(type(self), write_address)
        if anneal is not None and not discrete:
            raise InputError(
                f"DNTMCell expects discrete=True to go over to, but got anneal={anneal} without it."
            )
        self.discrete = discrete
        self.anneal = None if anneal is None else positive(type(self), "anneal", anneal)
        self.sees_whole_sequence = anneal is not None  # which is one batch, whatever its pieces
        self.hops = positive(type(self), "hops", hops)
        self.lru = lru
        self.nop = nop
        to: Placement = {"device": device, "dtype": dtype}
        self.address = nn.Parameter(torch.empty(cells, address_size, **to))
        counted = None if anneal is None else torch.zeros((), dtype=torch.long, device=device)
        self.register_buffer("batches", counted)
        self.controller = controller_class(controller)(
            input_size,
            hidden_size,
            address_size + content_size,
            generator=generator,
            bias=bias,
            to=to,
        )
        rows = sum(self._address_sizes)
        self.read_ih = nn.Parameter(torch.empty(rows, input_size, **to))
        self.read_hh = nn.Parameter(torch.empty(rows, hidden_size, **to))
        self.read_bias = nn.Parameter(torch.zeros(rows, **to)) if bias else None
        rows = rows + content_size + 1
        self.write_ih = nn.Parameter(torch.empty(rows, input_size, **to))
        self.write_hh = nn.Parameter(torch.empty(rows, hidden_size, **to))
        self.write_bias = nn.Parameter(torch.zeros(rows, **to)) if bias else None
        self.content_ih = nn.Parameter(torch.empty(content_size, input_size, **to))
        self.content_hh = nn.Parameter(torch.empty(content_size, hidden_size, **to))
        uniform_(self.address, 1.0, generator)
        for name, weight in self.named_parameters(recurse=False):
            if name.endswith(("_ih", "_hh")):
                uniform_(weight, hidden_size**-0.5, generator)

    @property
    def _address_sizes(self) -> list[int]:
        """Rows of k, β and, if it is there, γ."""
        return [self.address_size + self.content_size, 1, *([1] if self.lru else [])]

    def initial_state(self, batch_size: int) -> DNTMState:
        shapes: list[tuple[int, ...]] = [
            (self.hidden_size,),
            (self.hidden_size,),
            (self.cells, self.content_size),
            (self.cells,),
            (self.cells,),
            (),
        ]
        return DNTMState(*(zeros_like_parameters(self, batch_size, *shape) for shape in shapes))

    def sites(self) -> Sites:
        return self.controller.sites()

    def biases(self) -> Biases:
        return self.controller.biases()

    def prepare(self, x: Tensor, linear: Linear = F.linear) -> DNTMInput:
        sampled = self.discrete and self.training
        return DNTMInput(
            self.controller.prepare(x, linear),
            F.linear(x, self.read_ih, self.read_bias),
            F.linear(x, self.write_ih, self.write_bias),
            F.linear(x, self.content_ih),
            gumbel(*x.shape[:2], 2 * self.hops, self.cells, like=x) if sampled else (),
            Shared(self._soft(x) if sampled and self.batches is not None else None),
        )

    @torch.no_grad()
    def _soft(self, x: Tensor) -> Tensor:
        """Count a batch, and draw whether it is addressed continuously."""
        assert self.batches is not None
        chance = soft_probability(self.batches, self.anneal)
        self.batches.add_(1)
        drawn: Tensor = torch.rand((), device=x.device) < chance
        return drawn.to(x.dtype)

    def step(
        self, prepared: DNTMInput, state: DNTMState, tap: Taps = PLAIN
    ) -> tuple[Tensor, DNTMState]:
        h, c, content, v_r, v_w, _ = state
        memory = torch.cat([self.address.expand(len(content), -1, -1), content], -1)
        noise: list[Tensor | None] = [None] * (2 * self.hops)
        if isinstance(prepared.noise, Tensor):
            noise = [*prepared.noise.unbind(-2)]
        view = View(memory, unit(memory, floor=1e-4), prepared.soft.value)
        heads = prepared.read + F.linear(h, self.read_hh)
        w_r, v_r, log_read = self._address(heads, view, v_r, noise[: self.hops])
        r = read(memory, w_r).squeeze(1)
        before = h
        h, c = self.controller.step(prepared.controller, r, h, c, tap)
        address, e, alpha = self._written(prepared.write, h)
        if self.write_address == "before":
            address, _, _ = self._written(prepared.write, before)
        w_w, v_w, log_write = self._address(address, view, v_w, noise[self.hops :])
        written = torch.relu(F.linear(h, self.content_hh) + torch.sigmoid(alpha) * prepared.content)
        content = erase_and_add(content, w_w, torch.sigmoid(e).unsqueeze(1), written.unsqueeze(1))
        return h, DNTMState(h, c, content, v_r, v_w, log_read + log_write)

    def _written(self, prepared: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        """What the write head makes of h: how to address, what to erase, how much input to add."""
        heads = prepared + F.linear(h, self.write_hh)
        return torch.split(heads, [sum(self._address_sizes), self.content_size, 1], dim=-1)

    def _address(
        self, head: Tensor, view: View, average: Tensor, noise: Sequence[Tensor | None]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The weights of one head ``(batch, 1, cells)``, its new average, and how likely its
        choices were."""
        k, beta, *gamma = torch.split(wide(head), self._address_sizes, dim=-1)
        k, shift = k.unsqueeze(1), torch.sigmoid(gamma[0]) * average if self.lru else 0.0
        strength, last = 1 + F.softplus(beta), len(noise) - 1
        log_prob = head.new_zeros(len(head))
        for hop, drawn in enumerate(noise):
            z = strength * cosine(k, view.directions, floor=1e-4).squeeze(1)
            w, log_choice = self._weights(z - shift, drawn, view.soft)
            log_prob = log_prob + log_choice
            if hop < last:
                k = k + read(view.memory, w.to(view.memory.dtype))
        v = torch.lerp(z, wide(average), 0.1)
        to = average.dtype
        return w.to(to), v.to(to), log_prob.to(to)

    def _weights(
        self, logits: Tensor, noise: Tensor | None, soft: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """The weights of one look ``(batch, 1, cells)``, and how likely its choice was."""
        w, log_prob = torch.softmax(logits, -1), logits.new_zeros(len(logits))
        if self.discrete:
            hard, log_hard = choose(logits, noise)
            w = hard if soft is None else torch.lerp(hard, w, soft)
            log_prob = log_hard if soft is None else (1 - soft) * log_hard
        if self.nop:
            w = F.pad(w[:, :-1], (0, 1))
        return w.unsqueeze(1), log_prob

    def extra_repr(self) -> str:
        memory = f"address_size={self.address_size}, content_size={self.content_size}"
        kind = ", discrete=True" if self.discrete else ""
        kind += f", hops={self.hops}" if self.hops > 1 else ""
        return f"{super().extra_repr()}, cells={self.cells}, {memory}{kind}"


def soft_probability(batches: Any, every: Any) -> Any:
    r"""How likely a batch is addressed continuously: :math:`1 / \sqrt{1 + n}`.

    n is the number of batches so far over `every`, rounded down.

    Example:
        >>> [soft_probability(batches, 10) for batches in (0, 9, 30)]
        [1.0, 1.0, 0.5]
    """
    return (1 + batches // every) ** -0.5
