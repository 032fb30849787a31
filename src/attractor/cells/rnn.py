"""The plain recurrent network."""

from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement, Shared, zeros_like_parameters
from attractor.cells.gated import PLAIN, GatedCell, Linear, Taps
from attractor.cells.init import Initialiser, weights_
from attractor.cells.unitary import cayley, skew
from attractor.cells.wrap.normalise import UnitNorm
from attractor.checks import number
from attractor.errors import InputError


class RNNInput(NamedTuple):
    """The sums, and the matrix W if that is not a parameter itself."""

    sums: Tensor
    matrix: Shared


class RNNCell(GatedCell[RNNInput, Tensor]):
    r"""Plain recurrent network, with tanh or ReLU.

    .. math::
        h_t = f(U x_t + W h_{t-1} + b)

    With ``layer_norm``, :math:`h_t = f(\mathrm{LN}(U x_t + W h_{t-1}))`, whose shift takes the
    place of :math:`b`. ``weight_ih`` is :math:`U`, ``weight_hh`` is :math:`W`.

    With ``margin`` m the singular values of W stay within m of 1:

    .. math::
        W = P \, \mathrm{diag}(s) \, Q^\top, \qquad s_i = 2 m (\sigma(p_i) - 0.5) + 1

    P and Q are orthogonal: Cayley transforms of skew-symmetric matrices times those of the initial
    W, which are in ``left`` and ``right``. ``weight_hh`` then has the two skew matrices, that of P
    below its diagonal and that of Q above it, and p on it, and so as many parameters as W. It
    begins at zero: at the orthogonal matrix that is nearest to what ``recurrent_init`` fills.

    With ``orthogonality`` :math:`\lambda`, ``penalty()`` is
    :math:`\lambda \lVert W^\top W - I \rVert^2`; training adds it to the loss.

    Args:
        input_size: features in :math:`x_t`.
        hidden_size: units in :math:`h_t`.
        bias: learn :math:`b`.
        nonlinearity: :math:`f`, ``"tanh"`` or ``"relu"``.
        layer_norm: normalise the pre-activation over the units.
        input_init: fills ``weight_ih``.
        recurrent_init: fills ``weight_hh``; ``"orthogonal"`` and ``"identity"`` give the thesis's
            RNN-orth and RNN-id.
        margin: how far singular values of W may be from 1, from 0 (orthogonal) to 1; ``None``
            leaves W free.
        orthogonality: weight of the penalty on W for not being orthogonal; 0 for none.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``, h ``(batch, hidden_size)``; the output is the new h.

    Example:
        >>> cell = RNNCell(3, 8, nonlinearity="relu", recurrent_init="identity")
        >>> y, h = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> y.shape
        torch.Size([2, 8])

    Departs from the paper: nothing, but for ``margin``, where P and Q are functions of free
    parameters instead of being moved along the manifold by an update of their own. Against
    ``nn.RNN``: one bias instead of two that are added, and it starts at zero.

    References:
        Elman (1990), Finding structure in time; Chandar (2020), equations 2.8 and 2.40 to 2.42; Le
        et al. (2015), arXiv:1504.00941, for the identity; Ba et al. (2016), arXiv:1607.06450, for
        layer norm; Vorontsov et al. (2017), arXiv:1702.00071, for the margin.
    """

    reference = "elman1990finding"
    left: Tensor
    right: Tensor

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        bias: bool = True,
        nonlinearity: Literal["tanh", "relu"] = "tanh",
        layer_norm: bool = False,
        input_init: Initialiser = "uniform",
        recurrent_init: Initialiser = "uniform",
        margin: float | None = None,
        orthogonality: float = 0.0,
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        if nonlinearity not in ("tanh", "relu"):
            raise InputError(
                f"RNNCell expects nonlinearity 'tanh' or 'relu', but got {nonlinearity!r}."
            )
        if margin is not None and (isinstance(margin, bool) or not 0 <= margin <= 1):
            raise InputError(f"RNNCell expects margin from 0 to 1, but got {margin!r}. Try 0.1.")
        self.margin, self.orthogonality = margin, number("orthogonality", orthogonality, 0)
        to: Placement = {"device": device, "dtype": dtype}
        self.nonlinearity = nonlinearity
        self.weight_ih = nn.Parameter(torch.empty(hidden_size, input_size, **to))
        self.weight_hh = nn.Parameter(torch.empty(hidden_size, hidden_size, **to))
        self.bias = (
            nn.Parameter(torch.zeros(hidden_size, **to)) if bias and not layer_norm else None
        )
        self.norm = UnitNorm(hidden_size, bias=bias, **to) if layer_norm else None
        weights_(self.weight_ih, input_init, hidden_size, generator)
        weights_(self.weight_hh, recurrent_init, hidden_size, generator)
        if margin is not None:
            self.recurrent_weights = ()  # to drop what W is made of is not to drop W
            left, right = _bases(self.weight_hh.detach())
            self.register_buffer("left", left)
            self.register_buffer("right", right)
            nn.init.zeros_(self.weight_hh)

    def initial_state(self, batch_size: int) -> Tensor:
        return zeros_like_parameters(self, batch_size, self.hidden_size)

    def matrix(self) -> Tensor:
        """W ``(hidden_size, hidden_size)``."""
        if self.margin is None:
            return self.weight_hh
        P = cayley(skew(self.weight_hh)) @ self.left
        Q = cayley(skew(self.weight_hh.mT)) @ self.right
        s = 2 * self.margin * (torch.sigmoid(self.weight_hh.diagonal()) - 0.5) + 1
        return (P * s) @ Q.mT

    def penalty(self) -> Tensor | None:
        if not self.orthogonality:
            return None
        W = self.matrix()
        eye = torch.eye(len(W), dtype=W.dtype, device=W.device)
        return self.orthogonality * (W.mT @ W - eye).square().sum()

    def prepare(self, x: Tensor, linear: Linear = F.linear) -> RNNInput:
        whole = None if self.margin is None else self.matrix()
        return RNNInput(linear(x, self.weight_ih, self.bias), Shared(whole))

    def step(self, prepared: RNNInput, state: Tensor, tap: Taps = PLAIN) -> tuple[Tensor, Tensor]:
        W = self.weight_hh if prepared.matrix.value is None else prepared.matrix.value
        a = tap.x(prepared.sums) + tap.h(F.linear(state, W))
        if self.norm is not None:
            a = self.norm(a)
        h = tap.candidate(torch.relu(a) if self.nonlinearity == "relu" else torch.tanh(a))
        h = h.to(state.dtype)
        return h, h


def _bases(weight: Tensor) -> tuple[Tensor, Tensor]:
    """The orthogonal matrices of the singular value decomposition of a matrix."""
    if weight.is_meta:
        return torch.empty_like(weight), torch.empty_like(weight)
    left, _, right = torch.linalg.svd(weight.to(torch.promote_types(weight.dtype, torch.float32)))
    return left.to(weight.dtype), right.mT.contiguous().to(weight.dtype)
