"""The long short-term memory of 1997, which cannot forget."""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement, zeros_like_parameters
from attractor.cells.gated import PLAIN, GatedCell, Linear, Sites, Taps
from attractor.cells.init import Initialiser, weights_
from attractor.cells.lstm import LSTMState


class LSTM1997Cell(GatedCell[Tensor, LSTMState]):
    r"""The long short-term memory of 1997: a cell that adds and never forgets.

    .. math::
        i_t, o_t &= \sigma(W_{\{I,O\}} x_t + U_{\{I,O\}} h_{t-1} + b_{\{I,O\}}) \\
        a_t &= \tanh(W_A x_t + U_A h_{t-1} + b_A) \\
        c_t &= c_{t-1} + i_t \odot a_t \\
        h_t &= o_t \odot \tanh(c_t)

    The sum in the third line is the constant error carousel: the gradient of :math:`c_{t-1}` is
    that of :math:`c_t`, whatever the weights. ``weight_ih``, ``weight_hh`` and ``bias`` stack I, A,
    O, which is the order of `LSTMCell` without the forget gate.

    Args:
        input_size: features in :math:`x_t`.
        hidden_size: units in :math:`c_t` and :math:`h_t`.
        bias: learn the biases.
        input_init: fills ``weight_ih``.
        recurrent_init: fills ``weight_hh``.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``; the state is ``(h, c)``, each ``(batch, hidden_size)``; the
        output is the new h.

    Example:
        >>> cell = LSTM1997Cell(3, 8)
        >>> y, (h, c) = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> c.shape
        torch.Size([2, 8])

    Departs from the paper: nothing of the thesis's form. The paper of 1997 squashes the candidate
    to [-2, 2], shares gates within blocks of cells, and cuts the gradient where it leaves a cell;
    here it is whole.

    References:
        Hochreiter and Schmidhuber (1997), Long short-term memory; Kuo (2021), thesis, section
        3.1.3.1.
    """

    reference = "hochreiter1997long"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        bias: bool = True,
        input_init: Initialiser = "uniform",
        recurrent_init: Initialiser = "uniform",
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        to: Placement = {"device": device, "dtype": dtype}
        self.weight_ih = nn.Parameter(torch.empty(3 * hidden_size, input_size, **to))
        self.weight_hh = nn.Parameter(torch.empty(3 * hidden_size, hidden_size, **to))
        self.bias = nn.Parameter(torch.zeros(3 * hidden_size, **to)) if bias else None
        weights_(self.weight_ih, input_init, hidden_size, generator)
        weights_(self.weight_hh, recurrent_init, hidden_size, generator)

    def initial_state(self, batch_size: int) -> LSTMState:
        h = zeros_like_parameters(self, batch_size, self.hidden_size)
        return LSTMState(h, h.clone())

    def sites(self) -> Sites:
        return super().sites()._replace(memory=self.hidden_size)

    def prepare(self, x: Tensor, linear: Linear = F.linear) -> Tensor:
        return linear(x, self.weight_ih, self.bias)

    def step(
        self, prepared: Tensor, state: LSTMState, tap: Taps = PLAIN
    ) -> tuple[Tensor, LSTMState]:
        h, c = state
        i, a, o = (tap.x(prepared) + tap.h(F.linear(h, self.weight_hh))).chunk(3, dim=-1)
        c = c + torch.sigmoid(i) * tap.candidate(torch.tanh(a))
        h = torch.sigmoid(o) * torch.tanh(tap.memory(c))
        return h, LSTMState(h, c)
