r"""Matrices that keep the norm, and networks whose recurrent matrix is one.

Complex vectors are real tensors with the real part above the imaginary one, ``(2, batch, units)``,
and complex matrices act on real numbers followed by imaginary ones, so that they are real too.
"""

import math
from abc import abstractmethod
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attractor.cells.base import Cell, Shared, zeros_like_parameters
from attractor.cells.rotations import complex_modrelu


class UnitaryInput(NamedTuple):
    """What the input contributes, and the matrix W."""

    sums: Tensor
    matrix: Shared


class UnitaryState(NamedTuple):
    """Real and imaginary part of the hidden state."""

    re: Tensor
    im: Tensor


class UnitaryCell(Cell[UnitaryInput, UnitaryState]):
    r"""A cell that rotates its complex state, adds the input and shifts the moduli.

    .. math::
        z_t &= W h_{t-1} + V x_t \\
        h_t &= \frac{z_t}{|z_t| + \epsilon} \odot \mathrm{ReLU}(|z_t| + \epsilon + b)

    Each cell says which unitary W it has.
    """

    weight_ih: nn.Parameter
    bias: nn.Parameter | None

    @abstractmethod
    def matrix(self) -> Tensor:
        """W, real, of shape ``(2 * hidden_size, 2 * hidden_size)``."""

    def initial_state(self, batch_size: int) -> UnitaryState:
        re = zeros_like_parameters(self, batch_size, self.hidden_size)
        return UnitaryState(re, torch.zeros_like(re))

    def prepare(self, x: Tensor) -> UnitaryInput:
        return UnitaryInput(F.linear(x, self.weight_ih), Shared(self.matrix()))

    def step(self, prepared: UnitaryInput, state: UnitaryState) -> tuple[Tensor, UnitaryState]:
        z = prepared.sums + F.linear(torch.cat(state, dim=-1), prepared.matrix.value)
        z = torch.stack(z.to(self.weight_ih.dtype).chunk(2, dim=-1))
        re, im = complex_modrelu(z, self.bias, eps=0.01).unbind(0)
        return re, UnitaryState(re, im)


def as_real(re: Tensor, im: Tensor) -> Tensor:
    """A complex matrix as the real one that acts on real parts followed by imaginary ones."""
    return torch.cat((torch.cat((re, -im), 1), torch.cat((im, re), 1)))


def fourier(z: Tensor, *, inverse: bool = False) -> Tensor:
    r"""The unitary Fourier transform of z ``(2, batch, n)``, :math:`e^{-2\pi i jk/n} / \sqrt n`.

    Example:
        >>> one = torch.tensor([[[1.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0]]])
        >>> fourier(one)[0]
        tensor([[0.5000, 0.5000, 0.5000, 0.5000]])
    """
    n = z.shape[-1]
    index = torch.arange(n, device=z.device)
    angle = 2 * math.pi / n * (index[:, None] * index % n).to(z.dtype)
    cos, sin = angle.cos() / math.sqrt(n), angle.sin() / math.sqrt(n)
    sin = -sin if inverse else sin
    re, im = z.unbind()
    return torch.stack((re @ cos + im @ sin, im @ cos - re @ sin))


def reflect(z: Tensor, v: Tensor) -> Tensor:
    r"""z ``(2, batch, n)`` reflected at v ``(2, n)``: :math:`z - 2 v v^* z / |v|^2`.

    Example:
        >>> z = torch.tensor([[[3.0, 4.0]], [[0.0, 1.0]]])
        >>> reflect(z, torch.tensor([[2.0, 0.0], [0.0, 0.0]]))[0]
        tensor([[-3.,  4.]])
    """
    (re, im), (v_re, v_im) = z.unbind(), v.unbind()
    scale = 2 / v.square().sum()
    inner_re = scale * (re * v_re + im * v_im).sum(-1, keepdim=True)
    inner_im = scale * (im * v_re - re * v_im).sum(-1, keepdim=True)
    turned = (v_re * inner_re - v_im * inner_im, v_re * inner_im + v_im * inner_re)
    return z - torch.stack(turned)


def skew(weight: Tensor) -> Tensor:
    """The skew-symmetric matrix with the part of a square one that is below its diagonal."""
    below = weight.tril(-1)
    return below - below.mT


def cayley(skewed: Tensor) -> Tensor:
    r"""The orthogonal matrix :math:`(I + A/2)^{-1} (I - A/2)` of a skew-symmetric A.

    Example:
        >>> Q = cayley(skew(torch.randn(5, 5)))
        >>> bool(torch.allclose(Q @ Q.mT, torch.eye(5), atol=1e-5))
        True
    """
    half = skewed / 2
    eye = torch.eye(len(half), dtype=half.dtype, device=half.device)
    if torch.compiler.is_compiling():
        return _inverse(eye + half) @ (eye - half)
    # half precision has no solver
    wide = torch.promote_types(half.dtype, torch.float32)
    solved: Tensor = torch.linalg.solve((eye + half).to(wide), (eye - half).to(wide))
    return solved.to(half.dtype)


def _inverse(matrix: Tensor) -> Tensor:
    """The inverse of I + A, where A is skew, by products alone, which any exported graph has.

    Newton's iteration: its error is squared at each step, and begins below one, as no singular
    value of the matrix is below one.
    """
    twice = 2 * torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    found = matrix.mT / matrix.square().sum()
    for _ in range(30):
        found = found @ (twice - matrix @ found)
    return found
