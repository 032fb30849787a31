"""An angle that falls as a sequence goes on, and whose sine is a forget gate."""

import math
from typing import NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from attractor.cells.base import State, positive
from attractor.cells.gated import GatedCell, Linear, joined
from attractor.errors import InputError

S = TypeVar("S", bound=State)


class DecayNetInput(NamedTuple):
    """The sums, and how far the angle falls at each step per unit of its sum."""

    sums: Tensor
    rate: Tensor


class DecayingCell(GatedCell[DecayNetInput, S]):
    r"""A cell that knows how long its sequence is, and forgets by an angle that falls over it.

    .. math::
        p_t = p_{t-1} - \frac{\pi}{2D} \frac{1}{6} (s_t + 3), \quad p_0 = \frac{\pi}{2}

    where :math:`s_t` is the sum of the forget gate. The state has ``fall``,
    :math:`\pi/2 - p_t`, so that a state of zeros is the one before the first step.
    """

    fixed_state = ("fall",)

    def __init__(self, input_size: int, hidden_size: int, length: int | None) -> None:
        super().__init__(input_size, hidden_size)
        self.length = None if length is None else positive(type(self), "length", length)
        self.sees_whole_sequence = length is None

    def resume(self, state: S) -> S:
        self._check_length()
        return state

    def forward(self, x: Tensor, state: S | None = None) -> tuple[Tensor, S]:
        self._check_length()
        return super().forward(x, state)

    def _check_length(self) -> None:
        if self.length is None:
            raise InputError(
                f"{type(self).__name__} expects to know the length of a sequence that comes in "
                "pieces, by hand or with a state, but length is None. Try length=100, the steps of "
                "the whole."
            )

    def prepare(self, x: Tensor, linear: Linear = F.linear) -> DecayNetInput:
        time, batch = x.shape[:2]
        return self.prepare_ragged(x, torch.full((batch,), time, device=x.device), linear)

    def prepare_ragged(
        self, x: Tensor, lengths: Tensor, linear: Linear = F.linear
    ) -> DecayNetInput:
        time, batch = x.shape[:2]
        sums = linear(x, self.weight_ih, joined(self.biases()))
        # half precision cannot count to the length of a long sequence
        exact = torch.promote_types(sums.dtype, torch.float32)
        D = lengths.to(device=x.device, dtype=exact)
        D = D if self.length is None else torch.full_like(D, self.length)
        rate = (math.pi / 12 / D).to(sums.dtype)
        return DecayNetInput(sums, rate[None, :, None].expand(time, batch, 1))

    def extra_repr(self) -> str:
        return super().extra_repr() + ("" if self.length is None else f", length={self.length}")


def fallen(fall: Tensor, rate: Tensor, s: Tensor) -> Tensor:
    r"""How far the angle has fallen after a step whose forget gate has the sum s."""
    return fall + rate * (s + 3)


def forget_gate(fall: Tensor) -> Tensor:
    r"""The sine of the angle, :math:`\sin(\pi/2 - fall)`, within a right angle.

    Example:
        >>> forget_gate(torch.tensor([-1.0, 0.0, 1.0472, 9.0]))
        tensor([1.0000, 1.0000, 0.5000, 0.0000])
    """
    right_angle = 1.5707963267948966  # written out: a compiled loop takes no float from outside
    return torch.sin((right_angle - fall).clamp(0.0, right_angle))
