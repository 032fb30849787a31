"""Non-saturating recurrent unit."""

from math import isqrt, sqrt
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Cell, Placement, positive, zeros_like_parameters
from attractor.cells.init import uniform_
from attractor.checks import number
from attractor.errors import InputError


class NRUState(NamedTuple):
    """Hidden state and memory."""

    h: Tensor
    m: Tensor


def directions(
    p: Tensor, q: Tensor, heads: int, *, relu_heads: bool = False, norm: float = 5.0
) -> Tensor:
    r"""The directions along which the heads write: :math:`g(\mathrm{vec}(p q^\top))`.

    The outer product, row by row, is cut into one block per head; g is an optional ReLU and the
    division of each block by its norm, by default :math:`L_5`. A block of zeros stays zero.

    Shape:
        p and q ``(..., s)``; the result is ``(..., heads, s * s // heads)``.

    Example:
        >>> directions(torch.tensor([3.0, 0.0]), torch.tensor([0.0, 7.0]), heads=1)
        tensor([[0., 1., 0., 0.]])
    """
    outer = (p[..., :, None] * q[..., None, :]).flatten(-2)
    v = torch.unflatten(outer, -1, (heads, -1))
    if relu_heads:
        v = torch.relu(v)
    # The fifth power of 5e7 overflows float32, so the largest entry is made 1 first; the result
    # does not depend on that scale, so no gradient passes through it. The sum is then at least 1,
    # unless the scale is its floor 1e-12, and there 1 is the floor of the norm.
    u = v / v.detach().abs().amax(-1, keepdim=True).clamp_min(1e-12)
    square = u * u
    power = square * square * u.abs() if norm == 5 else u.abs() ** norm
    return u / power.sum(-1, keepdim=True).clamp_min(1) ** (1 / norm)


class NRUCell(Cell[Tensor, NRUState]):
    r"""Non-saturating recurrent unit: a memory that is only added to, and no gate that saturates.

    .. math::
        h_t &= \mathrm{ReLU}(W_h h_{t-1} + W_i x_t + W_c m_{t-1} + b_h) \\
        \alpha, \beta &= f_\alpha(x_t, h_t, m_{t-1}), f_\beta(x_t, h_t, m_{t-1}) \\
        p^w, q^w &= f_{w_1}(x_t, h_t, m_{t-1}), f_{w_2}(x_t, h_t, m_{t-1}) \\
        v^w_1, \ldots, v^w_k &= g(\mathrm{vec}(p^w q^{w\top})), \qquad
        \text{and } v^e_1, \ldots, v^e_k \text{ likewise} \\
        m_t &= m_{t-1} + \sum_i \alpha_i v^w_i - \sum_i \beta_i v^e_i

    Each :math:`f` is linear with a bias, followed on :math:`\alpha` and :math:`\beta` by a ReLU if
    ``relu_heads``; :math:`p` and :math:`q` have :math:`\sqrt{km}` entries; :math:`g` is
    `directions`: a ReLU if ``relu_heads``, then division by the :math:`L_5` norm, or that of
    ``norm``.

    The rows of the heads are stacked as :math:`\alpha, \beta, p^w, p^e, q^w, q^e`. ``weight_ih``
    stacks :math:`W_i` above what the heads read from :math:`x_t`, ``weight_mh`` stacks :math:`W_c`
    above what they read from :math:`m_{t-1}`, and ``bias`` stacks :math:`b_h` above theirs;
    ``weight_hh`` is :math:`W_h`, and ``weight_heads`` what the heads read from :math:`h_t`.

    Args:
        input_size: features in :math:`x_t`.
        hidden_size: units in :math:`h_t`.
        memory_size: units in :math:`m_t`; ``heads * memory_size`` must be a perfect square. By
            default ``heads * n**2``, with n chosen so that this is about ``hidden_size``.
        heads: :math:`k`, how many write and how many erase.
        relu_heads: contents and directions that are not negative, so that writing only adds and
            erasing only subtracts (the thesis's language model).
        heads_read_input: the heads see :math:`x_t` (the equations). The author's code and the
            published parameter counts have ``False``.
        average_heads: divide both sums by :math:`k`, as the author's code does.
        norm: p of the :math:`L_p` norm that directions are divided by, at least 1. The thesis says
            that 5 is slightly better than 2.
        memory: ``"additive"``, or ``"multiplicative"`` to erase in proportion to what is there:
            :math:`m_t = m_{t-1} \odot (1 - \sum_i \beta_i v^e_i) + \sum_i \alpha_i v^w_i`.
        feedback: a factor on the initial weights by which :math:`\alpha` and :math:`\beta` read
            :math:`h_t` and :math:`m_{t-1}`. With 1 a new network's memory grows exponentially with
            the length of a sequence, often past 1e4 within 300 steps and past 1e6 within 800; with
            0 it grows in proportion. Try 0, with ``average_heads``, for sequences of more than 100
            steps.
        bias: learn the biases.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``; the state is ``(h, m)``, ``(batch, hidden_size)`` and
        ``(batch, memory_size)``; the output is the new h.

    Example:
        >>> cell = NRUCell(3, 80, memory_size=64)
        >>> y, (h, m) = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> m.shape
        torch.Size([2, 64])

    Departs from the paper: every linear function has a bias, which the equations do not print but
    the published parameter counts need. The norm is at least 1e-12. Weights start as in
    ``nn.Linear``, but those of :math:`\alpha` and :math:`\beta` :math:`k` times smaller where heads
    are summed: the network then starts as one that averages, instead of with losses in the
    thousands. The thesis names multiplicative memory without defining it; in the author's code it
    scales the memory by what is written less what is erased, and a memory that starts at zero then
    stays zero.

    References:
        Chandar et al. (2019), Towards non-saturating recurrent units for modelling long-term
        dependencies, arXiv:1902.06704; Chandar (2020), equations 4.1 to 4.9.
    """

    reference = "chandar2019towards"
    recurrent_weights = ("weight_hh", "weight_mh")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        memory_size: int | None = None,
        heads: int = 4,
        relu_heads: bool = False,
        heads_read_input: bool = True,
        average_heads: bool = False,
        norm: float = 5.0,
        memory: Literal["additive", "multiplicative"] = "additive",
        feedback: float = 1.0,
        bias: bool = True,
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        self.heads = positive(type(self), "heads", heads)
        if memory_size is None:
            memory_size = _nearest_memory_size(hidden_size, heads)
        self.memory_size = positive(type(self), "memory_size", memory_size)
        self.side = isqrt(heads * memory_size)
        if self.side**2 != heads * memory_size:
            raise InputError(
                f"NRUCell expects heads * memory_size to be a perfect square, but {heads} * "
                f"{memory_size} = {heads * memory_size}. Try "
                f"memory_size={_nearest_memory_size(memory_size, heads)}."
            )
        if memory not in ("additive", "multiplicative"):
            raise InputError(
                f"NRUCell expects memory 'additive' or 'multiplicative', but got {memory!r}."
            )
        self.norm = number("norm", norm, 1)
        self.relu_heads = relu_heads
        self.heads_read_input = heads_read_input
        self.average_heads = average_heads
        self.memory = memory
        to: Placement = {"device": device, "dtype": dtype}
        n, rows = hidden_size, 2 * heads + 4 * self.side
        reading = n + rows if heads_read_input else n
        self.weight_ih = nn.Parameter(torch.empty(reading, input_size, **to))
        self.weight_mh = nn.Parameter(torch.empty(n + rows, memory_size, **to))
        self.weight_hh = nn.Parameter(torch.empty(n, n, **to))
        self.weight_heads = nn.Parameter(torch.empty(rows, n, **to))
        self.bias = nn.Parameter(torch.empty(n + rows, **to)) if bias else None
        # as nn.Linear: U(±1/sqrt(all that a row reads)), the bias too
        inputs = input_size + n + memory_size
        bound, bound_heads = inputs**-0.5, (inputs - (not heads_read_input) * input_size) ** -0.5
        uniform_(self.weight_hh, bound, generator)
        uniform_(self.weight_heads, bound_heads, generator)
        stacks = [self.weight_ih, self.weight_mh] + ([] if self.bias is None else [self.bias])
        for weight in stacks:
            uniform_(weight.detach()[:n], bound, generator)
            uniform_(weight.detach()[n:], bound_heads, generator)
        if not average_heads:
            # a sum of k contents grows without bounds from the start; let it start as their mean
            for weight in stacks:
                weight.detach()[n : n + 2 * heads].div_(heads)
            self.weight_heads.detach()[: 2 * heads].div_(heads)
        for contents in (self.weight_mh[n : n + 2 * heads], self.weight_heads[: 2 * heads]):
            contents.detach().mul_(number("feedback", feedback, 0))

    def initial_state(self, batch_size: int) -> NRUState:
        return NRUState(
            zeros_like_parameters(self, batch_size, self.hidden_size),
            zeros_like_parameters(self, batch_size, self.memory_size),
        )

    def prepare(self, x: Tensor) -> Tensor:
        silent = self.weight_mh.shape[0] - self.weight_ih.shape[0]  # heads that read no input
        return F.linear(x, F.pad(self.weight_ih, (0, 0, 0, silent)), self.bias)

    def step(self, prepared: Tensor, state: NRUState) -> tuple[Tensor, NRUState]:
        n, k, m = self.hidden_size, self.heads, state.m
        known = prepared + F.linear(m, self.weight_mh)
        h = torch.relu(known[..., :n] + F.linear(state.h, self.weight_hh))
        rows = known[..., n:] + F.linear(h, self.weight_heads)
        # in the memory's own type, which autocast does not lower: errors here would add up
        parts = torch.split(rows.to(m.dtype), [2 * k, 2 * self.side, 2 * self.side], dim=-1)
        contents, p, q = (torch.unflatten(part, -1, (2, -1)) for part in parts)  # write, erase
        if self.relu_heads:
            contents = torch.relu(contents)
        if self.average_heads:
            contents = contents / k
        v = directions(p, q, k, relu_heads=self.relu_heads, norm=self.norm)
        written, erased = (contents[..., None] * v).sum(-2).unbind(-2)
        if self.memory == "multiplicative":
            erased = m * erased
        h = h.to(m.dtype)
        return h, NRUState(h, m + written - erased)


def _nearest_memory_size(size: int, heads: int) -> int:
    """About `size`, and a perfect square once multiplied by `heads`."""
    return heads * max(1, round(sqrt(size / heads))) ** 2
