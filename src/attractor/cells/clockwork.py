"""Clockwork RNN: groups of units that move at different rates."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement, Shared, positive, zeros_like_parameters
from attractor.cells.gated import PLAIN, GatedCell, Linear, Taps
from attractor.cells.init import uniform_
from attractor.errors import InputError


class ClockworkState(NamedTuple):
    """The units, and how many steps each of them waits until it moves again."""

    h: Tensor
    wait: Tensor


class ClockworkInput(NamedTuple):
    """The sums, and the matrix U."""

    sums: Tensor
    matrix: Shared


class ClockworkCell(GatedCell[ClockworkInput, ClockworkState]):
    r"""Clockwork RNN: groups of units, each of which moves at its own rate and rests in between.

    .. math::
        \hat h_t &= \tanh(W x_t + U h_{t-1} + b) \\
        h_t[g] &= \hat h_t[g] \text{ if } t \bmod T_g = 0, \text{ else } h_{t-1}[g]

    t counts from 0, so that all groups move at the first step. Groups are ordered from fast to
    slow, and U is block upper triangular: a group reads itself and the slower ones. With
    ``reads="itself"`` it reads itself alone.

    ``weight_hh`` has one matrix for each group, whose columns are the units that the group reads.
    If the units cannot be shared out evenly, the faster groups have one more.

    Args:
        input_size: features in :math:`x_t`.
        hidden_size: units in :math:`h_t`, at least one for each group.
        periods: :math:`T_g` of each group, from fast to slow.
        reads: a group reads ``"slower"`` groups and itself, or ``"itself"`` alone.
        bias: learn :math:`b`.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``; the state is ``(h, wait)``, each ``(batch, hidden_size)``; the
        output is the new h.

    Example:
        >>> cell = ClockworkCell(3, 8, periods=(1, 4))
        >>> y, (h, wait) = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> wait[0]
        tensor([0., 0., 0., 0., 3., 3., 3., 3.])

    Departs from the paper: nothing; by default there are four groups, with the periods 1, 2, 4 and
    8. Kuo's thesis describes groups that are not connected at all, which is ``reads="itself"``.

    References:
        Koutník et al. (2014), A clockwork RNN, arXiv:1402.3511; Kuo (2021), thesis, section 3.1.6.
    """

    reference = "koutnik2014clockwork"
    fixed_state = ("wait",)
    period: Tensor

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        periods: Sequence[int] = (1, 2, 4, 8),
        reads: Literal["slower", "itself"] = "slower",
        bias: bool = True,
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        self.periods = _checked(periods, hidden_size)
        if reads not in ("slower", "itself"):
            raise InputError(
                f"ClockworkCell expects reads 'slower' or 'itself', but got {reads!r}."
            )
        self.reads = reads
        to: Placement = {"device": device, "dtype": dtype}
        even, more = divmod(hidden_size, len(self.periods))
        self.sizes = [even + (index < more) for index in range(len(self.periods))]
        self.recurrent_weights = tuple(f"weight_hh.{index}" for index in range(len(self.sizes)))
        self.weight_ih = nn.Parameter(torch.empty(hidden_size, input_size, **to))
        self.weight_hh = nn.ParameterList()
        for start, size in zip(self._starts(), self.sizes, strict=True):
            columns = size if reads == "itself" else hidden_size - start
            self.weight_hh.append(nn.Parameter(torch.empty(size, columns, **to)))
        self.bias = nn.Parameter(torch.zeros(hidden_size, **to)) if bias else None
        for weight in (self.weight_ih, *self.weight_hh):
            uniform_(weight, hidden_size**-0.5, generator)
        period = torch.cat([torch.full((s,), float(p), **to) for s, p in self._groups()])
        self.register_buffer("period", period, persistent=False)

    def _groups(self) -> list[tuple[int, int]]:
        """How many units each group has, and its period."""
        return list(zip(self.sizes, self.periods, strict=True))

    def _starts(self) -> list[int]:
        """The first unit of each group."""
        return [sum(self.sizes[:index]) for index in range(len(self.sizes))]

    def initial_state(self, batch_size: int) -> ClockworkState:
        h = zeros_like_parameters(self, batch_size, self.hidden_size)
        return ClockworkState(h, h.clone())

    def prepare(self, x: Tensor, linear: Linear = F.linear) -> ClockworkInput:
        return ClockworkInput(linear(x, self.weight_ih, self.bias), Shared(self.matrix()))

    def step(
        self, prepared: ClockworkInput, state: ClockworkState, tap: Taps = PLAIN
    ) -> tuple[Tensor, ClockworkState]:
        h, wait = state
        sums = tap.x(prepared.sums) + tap.h(F.linear(h, prepared.matrix.value))
        new = tap.candidate(torch.tanh(sums)).to(h.dtype)
        moves = wait < 0.5
        h = torch.where(moves, new, h)
        wait = torch.where(moves, self.period, wait) - 1
        return h, ClockworkState(h, wait)

    def matrix(self) -> Tensor:
        """U as a whole ``(hidden_size, hidden_size)``."""
        n = self.hidden_size
        return torch.cat(
            [
                F.pad(weight, (start, n - start - weight.shape[1]))
                for start, weight in zip(self._starts(), self.weight_hh, strict=True)
            ]
        )

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, periods={self.periods}, reads={self.reads!r}"


def _checked(periods: Sequence[int], hidden_size: int) -> tuple[int, ...]:
    found = tuple(positive(ClockworkCell, "every period", period) for period in periods)
    if not found or list(found) != sorted(set(found)):
        raise InputError(
            f"ClockworkCell expects periods that grow, but got {list(periods)}. "
            "Try periods=[1, 2, 4, 8]."
        )
    if len(found) > hidden_size:
        raise InputError(
            f"ClockworkCell expects at least one unit for each of its {len(found)} periods, but "
            f"got hidden_size={hidden_size}. Try more units, or fewer periods."
        )
    return found
