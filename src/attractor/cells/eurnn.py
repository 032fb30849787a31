"""Efficient unitary recurrent network."""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.base import Cell, Placement, Shared, zeros_like_parameters
from attractor.cells.init import uniform_
from attractor.cells.rotations import (
    angles,
    complex_modrelu,
    layout,
    matrix,
    modrelu,
    pays,
    rotate,
    turn,
)


class EURNNInput(NamedTuple):
    """What the input contributes, and the matrix W if it is at hand."""

    sums: Tensor
    matrix: Shared


class EURNNState(NamedTuple):
    """Real and imaginary part of the hidden state."""

    re: Tensor
    im: Tensor


class EURNNCell(Cell[EURNNInput, Tensor | EURNNState]):
    r"""Efficient unitary recurrent network: rotates its state, and so neither fades nor explodes.

    .. math::
        W &= D F_1 F_2 \cdots F_L, \qquad D = \mathrm{diag}(e^{i\omega}) \\
        z_t &= W h_{t-1} + U x_t \\
        h_t &= \frac{z_t}{|z_t| + \epsilon} \odot \mathrm{ReLU}(|z_t| + \epsilon + b) \\
        y_t &= \mathrm{Re}\, h_t

    Each :math:`F` rotates disjoint pairs of coordinates by angles :math:`\theta` and
    :math:`\phi`, so :math:`W` is unitary whatever the angles. FFT-style (the default) has
    :math:`L = \log_2 n` layers that pair each coordinate with each other; with ``capacity`` there
    are that many layers of neighbours. ``attractor.cells.rotations`` says which pairs are rotated
    in which order. :math:`\epsilon = 0.01`.

    With ``real``, everything is real: :math:`W = F_1 \cdots F_L` is orthogonal, and
    :math:`h_t = \mathrm{sign}(z_t) \odot \mathrm{ReLU}(|z_t| + \epsilon + b)`.

    ``weight_ih`` stacks the real part of :math:`U` above its imaginary part; ``theta`` and
    ``phi`` hold the angles of all layers, layer 1 first; ``omega`` and ``bias`` are
    :math:`\omega` and :math:`b`. ``phi`` and ``omega`` are absent with ``real``.

    Args:
        input_size: features in :math:`x_t`.
        hidden_size: units in :math:`h_t`; FFT-style needs a power of two.
        capacity: layers of neighbours instead of FFT-style; ``hidden_size`` layers reach every
            unitary matrix.
        real: an orthogonal matrix and a real state, with less than half of the parameters.
        bias: learn :math:`b`; without it the modReLU is the identity.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``; the state is ``(re, im)``, each ``(batch, hidden_size)``, or h
        alone with ``real``; the output is the new real part.

    Example:
        >>> cell = EURNNCell(3, 8)
        >>> y, (re, im) = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> y.shape
        torch.Size([2, 8])

    Departs from the paper: :math:`\epsilon` is added to the modulus, in both places, so that the
    modReLU has no pole and a zero bias preserves the norm exactly; the authors' code adds it too.
    The output is the real part alone, as in that code. With ``real``, the bias starts at
    :math:`-\epsilon` instead of 0, which there is what preserves the norm. The initial state is
    zero, not learned.

    References:
        Jing et al. (2017), Tunable efficient unitary neural networks (EUNN) and their application
        to RNNs, arXiv:1612.05231; Chandar (2020), section 2.7.
    """

    reference = "jing2017tunable"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        capacity: int | None = None,
        real: bool = False,
        bias: bool = True,
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        to: Placement = {"device": device, "dtype": dtype}
        self.capacity = capacity
        self.real = real
        self.layers = layout(type(self), hidden_size, capacity)
        count, parts = angles(self.layers), 1 if real else 2
        self.weight_ih = nn.Parameter(torch.empty(parts * hidden_size, input_size, **to))
        self.theta = nn.Parameter(torch.empty(count, **to))
        self.phi = None if real else nn.Parameter(torch.empty(count, **to))
        self.omega = None if real else nn.Parameter(torch.empty(hidden_size, **to))
        initial = torch.full((hidden_size,), -0.01 if real else 0.0, **to)
        self.bias = nn.Parameter(initial) if bias else None
        uniform_(self.weight_ih, 0.01, generator)
        for angle in (self.theta, self.phi, self.omega):
            if angle is not None:
                uniform_(angle, math.pi, generator)

    def initial_state(self, batch_size: int) -> Tensor | EURNNState:
        re = zeros_like_parameters(self, batch_size, self.hidden_size)
        return re if self.real else EURNNState(re, torch.zeros_like(re))

    def prepare(self, x: Tensor) -> EURNNInput:
        whole = None
        if pays(self.hidden_size, steps=x.shape[0]):
            whole = matrix(self.hidden_size, self.layers, self.theta, self.phi, self.omega)
        return EURNNInput(F.linear(x, self.weight_ih), Shared(whole))

    def step(
        self, prepared: EURNNInput, state: Tensor | EURNNState
    ) -> tuple[Tensor, Tensor | EURNNState]:
        z = prepared.sums + self._turned(state, prepared.matrix.value)
        z = z.to(self.weight_ih.dtype)
        if isinstance(state, Tensor):
            h = modrelu(z, self.bias, eps=0.01)
            return h, h
        re, im = complex_modrelu(torch.stack(z.chunk(2, dim=-1)), self.bias, eps=0.01).unbind(0)
        return re, EURNNState(re, im)

    def _turned(self, state: Tensor | EURNNState, whole: Tensor | None) -> Tensor:
        """W times the state; the imaginary part comes after the real one."""
        if whole is not None:
            h = state if isinstance(state, Tensor) else torch.cat(state, dim=-1)
            return F.linear(h, whole)
        if isinstance(state, Tensor):
            return rotate(state, self.layers, self.theta)
        assert self.omega is not None
        turned = turn(rotate(torch.stack(state), self.layers, self.theta, self.phi), self.omega)
        return torch.cat(turned.unbind(0), dim=-1)
