"""Statistical recurrent unit."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Cell, Placement, positive, zeros_like_parameters
from attractor.cells.init import uniform_
from attractor.errors import InputError


class StatRUCell(Cell[Tensor, Tensor]):
    r"""Statistical recurrent unit: moving averages of learned statistics, at several time scales.

    .. math::
        r_t &= f(W_r m_{t-1} + b_r) \\
        \hat m_t &= f(W_m r_t + W_x x_t + b_m) \\
        m_t^{(\alpha)} &= \alpha m_{t-1}^{(\alpha)} + (1 - \alpha) \hat m_t \\
        m_t &= [m_t^{(\alpha_1)}; m_t^{(\alpha_2)}; \ldots] \\
        h_t &= f(W_h m_t + b_h)

    :math:`f` is the ReLU. Nothing gates; an average with :math:`\alpha` near 1 forgets slowly.
    ``weight_ih`` and ``bias`` are :math:`W_x` and :math:`b_m`; the other weights have the name of
    their letter. The columns of ``weight_r`` and ``weight_h`` are in the order of ``alphas``.

    Args:
        input_size: features in :math:`x_t`.
        hidden_size: units in :math:`h_t`.
        statistics: units in :math:`\hat m_t`; by default ``hidden_size``.
        recurrent_size: units in :math:`r_t`; by default a quarter of ``hidden_size``.
        alphas: the scale of each average, each in [0, 1): the thesis's by default; the paper's are
            (0, 0.25, 0.5, 0.9, 0.99).
        bias: learn the biases.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``, m ``(batch, len(alphas) * statistics)``; the output is h
        ``(batch, hidden_size)``, which is not carried on.

    Example:
        >>> cell = StatRUCell(3, 8, alphas=(0.0, 0.9))
        >>> y, m = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> y.shape, m.shape
        (torch.Size([2, 8]), torch.Size([2, 16]))

    Departs from the paper: nothing in the equations. Weights start as U(±0.1), as there, and
    biases at zero.

    References:
        Oliva et al. (2017), The statistical recurrent unit, arXiv:1703.00381; Chandar (2020),
        equations 2.43 to 2.47.
    """

    reference = "oliva2017statistical"
    recurrent_weights = ("weight_r",)
    state_name = "m"
    alpha: Tensor

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        statistics: int | None = None,
        recurrent_size: int | None = None,
        alphas: Sequence[float] = (0.0, 0.5, 0.9, 0.99, 0.999),
        bias: bool = True,
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        S = hidden_size if statistics is None else statistics
        R = max(1, hidden_size // 4) if recurrent_size is None else recurrent_size
        self.statistics = positive(type(self), "statistics", S)
        self.recurrent_size = positive(type(self), "recurrent_size", R)
        self.alphas = tuple(float(alpha) for alpha in alphas)
        if not self.alphas or not all(0 <= alpha < 1 for alpha in self.alphas):
            raise InputError(
                f"StatRUCell expects alphas to be one or more numbers from 0 to below 1, but got "
                f"{alphas!r}. Try (0, 0.5, 0.9, 0.99)."
            )
        to: Placement = {"device": device, "dtype": dtype}
        averages = len(self.alphas) * S
        self.weight_ih = nn.Parameter(torch.empty(S, input_size, **to))
        self.weight_r = nn.Parameter(torch.empty(R, averages, **to))
        self.weight_m = nn.Parameter(torch.empty(S, R, **to))
        self.weight_h = nn.Parameter(torch.empty(hidden_size, averages, **to))
        self.bias, self.bias_r, self.bias_h = (
            nn.Parameter(torch.zeros(rows, **to)) if bias else None for rows in (S, R, hidden_size)
        )
        # one row per average; an option, not something learned, so not saved
        self.register_buffer("alpha", torch.tensor(self.alphas, **to)[:, None])
        for weight in (self.weight_ih, self.weight_r, self.weight_m, self.weight_h):
            uniform_(weight, 0.1, generator)

    def initial_state(self, batch_size: int) -> Tensor:
        return zeros_like_parameters(self, batch_size, len(self.alphas) * self.statistics)

    def prepare(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight_ih, self.bias)

    def step(self, prepared: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        r = torch.relu(F.linear(state, self.weight_r, self.bias_r))
        m_hat = torch.relu(prepared + F.linear(r, self.weight_m))
        old = torch.unflatten(state, -1, (len(self.alphas), self.statistics))
        m = (self.alpha * old + (1 - self.alpha) * m_hat[..., None, :]).flatten(-2)
        h = torch.relu(F.linear(m, self.weight_h, self.bias_h)).to(m.dtype)
        return h, m
