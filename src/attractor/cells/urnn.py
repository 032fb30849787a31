"""Unitary evolution recurrent network."""

import math

import torch
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement
from attractor.cells.init import uniform_
from attractor.cells.rotations import turn
from attractor.cells.unitary import UnitaryCell, as_real, fourier, reflect


class URNNCell(UnitaryCell):
    r"""Unitary evolution recurrent network: a rotation made of few simple ones.

    .. math::
        W &= D_3 R_2 \mathcal{F}^{-1} D_2 \Pi R_1 \mathcal{F} D_1 \\
        z_t &= W h_{t-1} + V x_t \\
        h_t &= \frac{z_t}{|z_t| + \epsilon} \odot \mathrm{ReLU}(|z_t| + \epsilon + b) \\
        y_t &= \mathrm{Re}\, h_t

    :math:`D = \mathrm{diag}(e^{i\omega})`, :math:`R = I - 2 v v^* / |v|^2` with a complex v,
    :math:`\mathcal{F}` is the Fourier transform and :math:`\Pi` a fixed random permutation, each of
    them unitary, and so W, with 7 n parameters. :math:`\epsilon = 0.01`.

    ``weight_ih`` stacks the real part of V above its imaginary part; ``phases`` has the
    :math:`\omega` of :math:`D_1, D_2, D_3`; ``reflections`` the real and imaginary part of the v of
    :math:`R_1`, then of :math:`R_2`; ``permutation`` says which coordinate comes to each place.

    Args:
        input_size: features in :math:`x_t`.
        hidden_size: units in :math:`h_t`.
        bias: learn :math:`b`; without it the modReLU is the identity.
        generator: draws the initial weights and the permutation; ``None`` means torch's default
            generator.

    Shape:
        x ``(batch, input_size)``; the state is ``(re, im)``, each ``(batch, hidden_size)``; the
        output is the new real part.

    Example:
        >>> cell = URNNCell(3, 8)
        >>> y, (re, im) = cell(torch.zeros(2, 3), cell.initial_state(2))
        >>> y.shape
        torch.Size([2, 8])

    Departs from the paper: :math:`\epsilon` is added to the modulus, in both places, so that the
    modReLU has no pole; the output is the real part alone, where the paper's linear layer reads
    both parts; the initial state is zero unless ``learn_initial_state`` asks for the learned one of
    the paper; W is multiplied out once for a sequence, so a step is one matrix product.

    References:
        Arjovsky et al. (2016), Unitary evolution recurrent neural networks, arXiv:1511.06464;
        Chandar (2020), section 2.7.
    """

    reference = "arjovsky2016unitary"
    permutation: Tensor

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        bias: bool = True,
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        to: Placement = {"device": device, "dtype": dtype}
        self.weight_ih = nn.Parameter(torch.empty(2 * hidden_size, input_size, **to))
        self.phases = nn.Parameter(torch.empty(3, hidden_size, **to))
        self.reflections = nn.Parameter(torch.empty(4, hidden_size, **to))
        self.bias = nn.Parameter(torch.zeros(hidden_size, **to)) if bias else None
        uniform_(self.weight_ih, math.sqrt(6 / (input_size + 2 * hidden_size)), generator)
        uniform_(self.phases, math.pi, generator)
        uniform_(self.reflections, 1.0, generator)
        where = None if generator is None else generator.device
        order = torch.randperm(hidden_size, generator=generator, device=where)
        self.register_buffer("permutation", order.to(self.weight_ih.device))

    def matrix(self) -> Tensor:
        first, second, third = self.phases.unbind()
        units = torch.eye(self.hidden_size, dtype=first.dtype, device=first.device)
        z = turn(torch.stack((units, torch.zeros_like(units))), first)
        z = reflect(fourier(z), self.reflections[:2])
        z = turn(z[..., self.permutation], second)
        z = turn(reflect(fourier(z, inverse=True), self.reflections[2:]), third)
        return as_real(*z.mT.unbind())
