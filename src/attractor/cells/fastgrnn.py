"""FastGRNN: one gate, used a second time to weigh the candidate."""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement, zeros_like_parameters
from attractor.cells.gated import PLAIN, Biases, GatedCell, Linear, Taps
from attractor.cells.init import Initialiser, check_chrono, chrono_, weights_


class FastGRNNCell(GatedCell[Tensor, Tensor]):
    r"""FastGRNN: a gated residual connection with two learnt constants.

    .. math::
        f_t &= \sigma(W_F x_t + U_F h_{t-1} + b_F) \\
        a_t &= \tanh(W_A x_t + U_A h_{t-1} + b_A) \\
        h_t &= f_t \odot h_{t-1} + (\beta (1 - f_t) + \kappa) \odot a_t

    :math:`\beta` and :math:`\kappa` are the sigmoids of ``beta_raw`` and ``kappa_raw``.
    ``weight_ih``, ``weight_hh`` and ``bias`` stack F above A; with ``shared``, ``weight_ih`` and
    ``weight_hh`` are the one W and the one U of both.

    Args:
        input_size: features in :math:`x_t`.
        hidden_size: units in :math:`h_t`.
        shared: the same matrices for the gate and the candidate, as in the original.
        bias: learn the biases.
        forget_bias: initial :math:`b_F`; :math:`b_A` starts at zero.
        t_max: chrono initialisation for dependencies of up to this many steps:
            :math:`b_F = \log U[1, T_{max} - 1]`.
        input_init: fills ``weight_ih``.
        recurrent_init: fills ``weight_hh``.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``, h ``(batch, hidden_size)``; the output is the new h.

    Example:
        >>> cell = FastGRNNCell(3, 8, shared=True)
        >>> y, h = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> y.shape
        torch.Size([2, 8])

    Departs from the paper: nothing of Kuo et al., whose gate and candidate have matrices of their
    own; ``shared=True`` is Kusupati et al., whose low-rank, sparse and quantised matrices are left
    out. The constants start at sigmoid(1) and sigmoid(-4) in every layer.

    References:
        Kusupati et al. (2018), FastGRNN, arXiv:1901.02358, section 3.2.1; Kuo et al. (2020),
        equations 45 to 47.
    """

    reference = "kusupati2018fastgrnn"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        shared: bool = False,
        bias: bool = True,
        forget_bias: float = 1.0,
        t_max: int | None = None,
        input_init: Initialiser = "uniform",
        recurrent_init: Initialiser = "uniform",
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        check_chrono(bias, t_max)
        to: Placement = {"device": device, "dtype": dtype}
        self.shared = shared
        rows = hidden_size if shared else 2 * hidden_size
        self.weight_ih = nn.Parameter(torch.empty(rows, input_size, **to))
        self.weight_hh = nn.Parameter(torch.empty(rows, hidden_size, **to))
        self.bias = nn.Parameter(torch.zeros(2 * hidden_size, **to)) if bias else None
        self.beta_raw = nn.Parameter(torch.tensor(1.0, **to))
        self.kappa_raw = nn.Parameter(torch.tensor(-4.0, **to))
        weights_(self.weight_ih, input_init, hidden_size, generator)
        weights_(self.weight_hh, recurrent_init, hidden_size, generator)
        if self.bias is not None:
            f, _ = self.bias.detach().chunk(2)
            f.fill_(forget_bias)
            if t_max is not None:
                chrono_(f, t_max, generator)

    def initial_state(self, batch_size: int) -> Tensor:
        return zeros_like_parameters(self, batch_size, self.hidden_size)

    def biases(self) -> Biases:
        # a shared sum has two biases, which are added when it has become two
        return () if self.shared and self.bias is not None else super().biases()

    def prepare(self, x: Tensor, linear: Linear = F.linear) -> Tensor:
        return linear(x, self.weight_ih, None if self.shared else self.bias)

    def step(self, prepared: Tensor, state: Tensor, tap: Taps = PLAIN) -> tuple[Tensor, Tensor]:
        sums = tap.x(prepared) + tap.h(F.linear(state, self.weight_hh))
        if self.shared:
            sums = torch.cat([sums, sums], dim=-1)
            sums = sums if self.bias is None else sums + self.bias
        f, a = sums.chunk(2, dim=-1)
        f = torch.sigmoid(f)
        beta, kappa = torch.sigmoid(self.beta_raw), torch.sigmoid(self.kappa_raw)
        h = f * state + (beta * (1 - f) + kappa) * tap.candidate(torch.tanh(a))
        return h, h
