"""Full-capacity unitary recurrent network."""

import math

import torch
from torch import Generator, Tensor, nn

from attractor.cells.base import Placement
from attractor.cells.init import normal_, uniform_
from attractor.cells.unitary import UnitaryCell, as_real, cayley, skew


class FullURNNCell(UnitaryCell):
    r"""Full-capacity unitary recurrent network: any unitary matrix can be its recurrent one.

    .. math::
        W &= (I + \tfrac12 A)^{-1} (I - \tfrac12 A) \, W_0, \qquad A^* = -A \\
        z_t &= W h_{t-1} + V x_t \\
        h_t &= \frac{z_t}{|z_t| + \epsilon} \odot \mathrm{ReLU}(|z_t| + \epsilon + b) \\
        y_t &= \mathrm{Re}\, h_t

    :math:`W_0` is a random unitary matrix, and A has :math:`n^2` real parameters, as many as the
    unitary matrices have dimensions. Any optimiser may change them freely: W stays unitary, and
    nothing is projected. One step of gradient descent from :math:`A = 0` is the paper's own,
    along the manifold; `rebase` makes the present W the new :math:`W_0`.

    ``weight_ih`` stacks the real part of V above its imaginary part. ``weight_hh`` holds A: its
    real part below the diagonal, its imaginary part above it, and on it the imaginary part over the
    root of 2, so that one step with rate :math:`\lambda` is the paper's with that rate. ``base`` is
    :math:`W_0`, the real part above the imaginary one.

    Args:
        input_size: features in :math:`x_t`.
        hidden_size: units in :math:`h_t`.
        bias: learn :math:`b`; without it the modReLU is the identity.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, input_size)``; the state is ``(re, im)``, each ``(batch, hidden_size)``; the
        output is the new real part.

    Example:
        >>> cell = FullURNNCell(3, 8)
        >>> W = cell.matrix()
        >>> bool(torch.allclose(W @ W.mT, torch.eye(16), atol=1e-5))
        True

    Departs from the paper: W is a function of free parameters instead of being moved along the
    manifold by an update of its own, so that every optimiser works; with ``rebase`` after each step
    of plain gradient descent it is that update. Without it, W with an eigenvalue of exactly -1
    relative to :math:`W_0` is out of reach. As in `URNNCell`, :math:`\epsilon = 0.01` is added to
    the modulus, the output is the real part, and the initial state is zero.

    References:
        Wisdom et al. (2016), Full-capacity unitary recurrent neural networks, arXiv:1611.00035;
        Chandar (2020), section 2.7.
    """

    reference = "wisdom2016full"
    recurrent_weights = ()
    base: Tensor

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
        self.weight_hh = nn.Parameter(torch.zeros(hidden_size, hidden_size, **to))
        self.bias = nn.Parameter(torch.zeros(hidden_size, **to)) if bias else None
        uniform_(self.weight_ih, math.sqrt(6 / (input_size + 2 * hidden_size)), generator)
        drawn = normal_(torch.empty(2, hidden_size, hidden_size, **to), 1.0, generator)
        self.register_buffer("base", drawn if drawn.is_meta else _unitary(drawn))

    def matrix(self) -> Tensor:
        above = self.weight_hh.triu(1)
        diagonal = math.sqrt(2) * torch.diag(self.weight_hh.diagonal())
        generator = as_real(skew(self.weight_hh), above + above.mT + diagonal)
        return cayley(generator) @ as_real(*self.base.unbind())

    @torch.no_grad()
    def rebase(self) -> None:
        """Take the present W for :math:`W_0`, and begin at A = 0 again: W stays as it is."""
        n = self.hidden_size
        self.base.copy_(torch.stack(torch.split(self.matrix()[:, :n], n)))
        self.weight_hh.zero_()


def _unitary(drawn: Tensor) -> Tensor:
    """A random unitary matrix ``(2, n, n)``, evenly distributed, from normal numbers."""
    wide = drawn.to(torch.promote_types(drawn.dtype, torch.float32))
    q, r = torch.linalg.qr(torch.complex(*wide.unbind()))
    q = q * torch.sgn(r.diagonal())
    return torch.stack((q.real, q.imag)).to(drawn.dtype)
