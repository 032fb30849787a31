"""Gated orthogonal recurrent unit."""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement, Shared, zeros_like_parameters
from attractor.cells.gated import PLAIN, Biases, GatedCell, Linear, Sites, Taps, joined
from attractor.cells.init import uniform_
from attractor.cells.rotations import angles, layout, matrix, modrelu, pays, rotate


class GORUInput(NamedTuple):
    """The sums, and ``weight_hh`` above the matrix U if that is at hand."""

    sums: Tensor
    matrix: Shared


class GORUCell(GatedCell[GORUInput, Tensor]):
    r"""Gated orthogonal recurrent unit: a GRU whose recurrent matrix is a rotation.

    .. math::
        r_t &= \sigma(W_{xr} x_t + W_{hr} h_{t-1} + b_r) \\
        z_t &= \sigma(W_{xz} x_t + W_{hz} h_{t-1} + b_z) \\
        \tilde h_t &= \mathrm{modReLU}(W_x x_t + r_t \odot (U h_{t-1})) \\
        h_t &= z_t \odot h_{t-1} + (1 - z_t) \odot \tilde h_t

    :math:`U = F_1 \cdots F_L` is orthogonal: each :math:`F` rotates disjoint pairs of coordinates
    by angles :math:`\theta`, as in `EURNNCell`, FFT-style or in ``capacity`` layers of neighbours.
    :math:`\mathrm{modReLU}(a) = \mathrm{sign}(a) \odot \mathrm{ReLU}(|a| + \epsilon + b)`, with
    :math:`\epsilon = 0.001`. The gate :math:`z_t` keeps the old state.

    ``weight_ih`` stacks r, z and the candidate; ``weight_hh`` and ``bias`` stack r and z;
    ``theta`` holds the angles of all layers, layer 1 first; ``modrelu_bias`` is :math:`b`.

    Args:
        input_size: features in :math:`x_t`.
        hidden_size: units in :math:`h_t`; FFT-style needs a power of two.
        capacity: layers of neighbours instead of FFT-style.
        bias: learn the biases of the gates and :math:`b`; without them the modReLU is the identity.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``, h ``(batch, hidden_size)``; the output is the new h.

    Example:
        >>> cell = GORUCell(3, 8)
        >>> y, h = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> y.shape
        torch.Size([2, 8])

    Departs from the paper: :math:`\epsilon` is added to the modulus, as in the authors' code.
    :math:`b_z` starts at zero; the paper does not say, and that code draws it at random.
    :math:`b_r` starts at 2 and :math:`b` at 0.01, as there.

    References:
        Jing et al. (2017), Gated orthogonal recurrent units: on learning to forget,
        arXiv:1706.02761; Chandar (2020), section 2.7.
    """

    reference = "jing2017gated"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        capacity: int | None = None,
        bias: bool = True,
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        to: Placement = {"device": device, "dtype": dtype}
        self.capacity = capacity
        self.layers = layout(type(self), hidden_size, capacity)
        self.weight_ih = nn.Parameter(torch.empty(3 * hidden_size, input_size, **to))
        self.weight_hh = nn.Parameter(torch.empty(2 * hidden_size, hidden_size, **to))
        self.bias = nn.Parameter(torch.zeros(2 * hidden_size, **to)) if bias else None
        self.theta = nn.Parameter(torch.empty(angles(self.layers), **to))
        initial = torch.full((hidden_size,), 0.01, **to)
        self.modrelu_bias = nn.Parameter(initial) if bias else None
        if self.bias is not None:
            self.bias.detach()[:hidden_size].fill_(2.0)
        uniform_(self.weight_ih, 0.01, generator)
        uniform_(self.weight_hh, 0.01, generator)
        uniform_(self.theta, math.pi, generator)

    def initial_state(self, batch_size: int) -> Tensor:
        return zeros_like_parameters(self, batch_size, self.hidden_size)

    def sites(self) -> Sites:
        apart = (2 * self.hidden_size, self.hidden_size)
        return Sites(apart, apart)

    def biases(self) -> Biases:
        return (2 * self.hidden_size if self.bias is None else self.bias, self.hidden_size)

    def prepare(self, x: Tensor, linear: Linear = F.linear) -> GORUInput:
        whole = None
        if pays(self.hidden_size, steps=x.shape[0]):
            rotation = matrix(self.hidden_size, self.layers, self.theta)
            whole = torch.cat([self.weight_hh, rotation])
        return GORUInput(linear(x, self.weight_ih, joined(self.biases())), Shared(whole))

    def step(self, prepared: GORUInput, state: Tensor, tap: Taps = PLAIN) -> tuple[Tensor, Tensor]:
        h, n = state, 2 * self.hidden_size
        from_x, from_h = tap.x(prepared.sums), tap.h(self._turned(h, prepared.matrix.value))
        r, z = torch.sigmoid(from_x[..., :n] + from_h[..., :n]).chunk(2, dim=-1)
        a = modrelu(from_x[..., n:] + r * from_h[..., n:], self.modrelu_bias, eps=0.001)
        h = z * h + (1 - z) * tap.candidate(a)
        return h, h

    def _turned(self, h: Tensor, whole: Tensor | None) -> Tensor:
        """What the gates read of h, and U times h."""
        if whole is not None:
            return F.linear(h, whole)
        return torch.cat([F.linear(h, self.weight_hh), rotate(h, self.layers, self.theta)], dim=-1)
