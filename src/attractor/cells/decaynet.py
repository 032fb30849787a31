"""DecayNet: an LSTM that can only forget more as the sequence goes on."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement, zeros_like_parameters
from attractor.cells.decay import DecayingCell, DecayNetInput, fallen, forget_gate
from attractor.cells.gated import PLAIN, Biases, Sites, Taps
from attractor.cells.init import Initialiser, weights_


class DecayNetState(NamedTuple):
    r"""Hidden state, cell state, and how far the angle has fallen, :math:`\pi/2 - p_t`.

    So a state of zeros is the one before the first step, as with other cells.
    """

    h: Tensor
    c: Tensor
    fall: Tensor


class DecayNetCell(DecayingCell[DecayNetState]):
    r"""DecayNet: an LSTM whose forget gate is the sine of an angle that falls towards zero.

    .. math::
        i_t, o_t &= \sigma(W_{\{I,O\}} x_t + U_{\{I,O\}} h_{t-1} + b_{\{I,O\}}) \\
        a_t &= \tanh(W_A x_t + U_A h_{t-1} + b_A) \\
        p_t &= p_{t-1} - \frac{\pi}{2D} \frac{1}{6} (W_F x_t + U_F h_{t-1} + 3), \quad
               p_0 = \frac{\pi}{2} \\
        f_t &= 1 \text{ if } p_t > \tfrac{\pi}{2}, \; 0 \text{ if } p_t < 0, \;
               \sin p_t \text{ otherwise} \\
        c_t &= f_t \odot c_{t-1} + i_t \odot a_t \\
        h_t &= o_t \odot \tanh(c_t)

    D is the length of the sequence. The gate never rises while
    :math:`W_F x_t + U_F h_{t-1} \geq -3`. ``weight_ih`` and ``weight_hh`` stack F, I, O, A;
    ``bias`` stacks I, O, A.

    Args:
        input_size: features in :math:`x_t`.
        hidden_size: units in :math:`h_t`.
        length: D. ``None`` takes the number of steps in each input, and in a packed batch each
            sequence's own; a sequence that is cut into pieces needs it.
        bias: learn the biases.
        input_init: fills ``weight_ih``.
        recurrent_init: fills ``weight_hh``.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``; the state is ``(h, c, fall)``, each ``(batch, hidden_size)``,
        where ``fall`` is :math:`\pi/2 - p_t`; the output is the new h.

    Example:
        >>> cell = DecayNetCell(3, 8, length=100)
        >>> y, (h, c, fall) = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> bool((fall > 0).all())
        True

    Departs from the paper: nothing. Weights start at U(±1) and biases at zero, as there; the
    clamp acts on f and not on p, so an angle that has left its range can come back.

    References:
        Kuo et al. (2018), DecayNet: a study on the cell states of long short term memories;
        Kuo (2021), thesis, sections 4.1.2 and 4.1.4.
    """

    reference = "kuo2018decaynet"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        length: int | None = None,
        bias: bool = True,
        input_init: Initialiser = "unit",
        recurrent_init: Initialiser = "unit",
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, length)
        to: Placement = {"device": device, "dtype": dtype}
        self.weight_ih = nn.Parameter(torch.empty(4 * hidden_size, input_size, **to))
        self.weight_hh = nn.Parameter(torch.empty(4 * hidden_size, hidden_size, **to))
        self.bias = nn.Parameter(torch.zeros(3 * hidden_size, **to)) if bias else None
        weights_(self.weight_ih, input_init, hidden_size, generator)
        weights_(self.weight_hh, recurrent_init, hidden_size, generator)

    def initial_state(self, batch_size: int) -> DecayNetState:
        zeros = zeros_like_parameters(self, batch_size, self.hidden_size)
        return DecayNetState(zeros, zeros.clone(), zeros.clone())

    def biases(self) -> Biases:
        n = self.hidden_size
        return (n, 3 * n if self.bias is None else self.bias)

    def sites(self) -> Sites:
        return super().sites()._replace(memory=self.hidden_size)

    def step(
        self, prepared: DecayNetInput, state: DecayNetState, tap: Taps = PLAIN
    ) -> tuple[Tensor, DecayNetState]:
        h, c, fall = state
        sums = tap.x(prepared.sums) + tap.h(F.linear(h, self.weight_hh))
        s, i, o, a = sums.chunk(4, dim=-1)
        fall = fallen(fall, prepared.rate, s)
        c = forget_gate(fall) * c + torch.sigmoid(i) * tap.candidate(torch.tanh(a))
        h = torch.sigmoid(o) * torch.tanh(tap.memory(c))
        return h, DecayNetState(h, c, fall)
