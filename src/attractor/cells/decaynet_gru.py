"""A gated recurrent unit that can only forget more as the sequence goes on."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement, zeros_like_parameters
from attractor.cells.decay import DecayingCell, DecayNetInput, fallen, forget_gate
from attractor.cells.gated import PLAIN, Biases, Sites, Taps
from attractor.cells.init import Initialiser, weights_


class DecayNetGRUState(NamedTuple):
    r"""Hidden state, and how far the angle has fallen, :math:`\pi/2 - p_t`."""

    h: Tensor
    fall: Tensor


class DecayNetGRUCell(DecayingCell[DecayNetGRUState]):
    r"""DecayNet's decay on a GRU: what keeps the old state is the sine of an angle that falls.

    .. math::
        r_t &= \sigma(W_R x_t + U_R h_{t-1} + b_R) \\
        p_t &= p_{t-1} - \frac{\pi}{2D} \frac{1}{6} (W_F x_t + U_F h_{t-1} + 3), \quad
               p_0 = \frac{\pi}{2} \\
        f_t &= 1 \text{ if } p_t > \tfrac{\pi}{2}, \; 0 \text{ if } p_t < 0, \;
               \sin p_t \text{ otherwise} \\
        \tilde h_t &= \tanh(W_A x_t + U_A (r_t \odot h_{t-1}) + b_A) \\
        h_t &= f_t \odot h_{t-1} + (1 - f_t) \odot \tilde h_t

    D is the length of the sequence. :math:`f_t` is in the place of the GRU's :math:`1 - z_t`, so
    there are as many weights as in a GRU, and one bias less. The gate never rises, and so ever more
    of the new comes in, while :math:`W_F x_t + U_F h_{t-1} \geq -3`. ``weight_ih`` and
    ``weight_hh`` stack F, R, A; ``bias`` stacks R, A.

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
        x ``(batch, input_size)``; the state is ``(h, fall)``, each ``(batch, hidden_size)``; the
        output is the new h.

    Example:
        >>> cell = DecayNetGRUCell(3, 8, length=100)
        >>> y, (h, fall) = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> bool((fall > 0).all())
        True

    Departs from the paper: it names the idea without equations; these are the GRU's, with its
    update gate replaced as the LSTM's forget gate is. Weights start at U(±1) and biases at zero, as
    those of a DecayNet do.

    References:
        Kuo et al. (2018), DecayNet: a study on the cell states of long short term memories,
        section 7.
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
        self.weight_ih = nn.Parameter(torch.empty(3 * hidden_size, input_size, **to))
        self.weight_hh = nn.Parameter(torch.empty(3 * hidden_size, hidden_size, **to))
        self.bias = nn.Parameter(torch.zeros(2 * hidden_size, **to)) if bias else None
        weights_(self.weight_ih, input_init, hidden_size, generator)
        weights_(self.weight_hh, recurrent_init, hidden_size, generator)

    def initial_state(self, batch_size: int) -> DecayNetGRUState:
        h = zeros_like_parameters(self, batch_size, self.hidden_size)
        return DecayNetGRUState(h, h.clone())

    def biases(self) -> Biases:
        n = self.hidden_size
        return (n, 2 * n if self.bias is None else self.bias)

    def sites(self) -> Sites:
        gates, candidate = 2 * self.hidden_size, self.hidden_size
        return Sites((gates, candidate), (gates,), inner=(candidate,))

    def step(
        self, prepared: DecayNetInput, state: DecayNetGRUState, tap: Taps = PLAIN
    ) -> tuple[Tensor, DecayNetGRUState]:
        h, n = state.h, 2 * self.hidden_size
        from_x, from_h = tap.x(prepared.sums), tap.h(F.linear(h, self.weight_hh[:n]))
        s, r = (from_x[..., :n] + from_h).chunk(2, dim=-1)
        fall = fallen(state.fall, prepared.rate, s)
        f = forget_gate(fall)
        inner = tap.inner(F.linear(torch.sigmoid(r) * h, self.weight_hh[n:]))
        a = torch.tanh(from_x[..., n:] + inner)
        h = f * h + (1 - f) * tap.candidate(a)
        return h, DecayNetGRUState(h, fall)
