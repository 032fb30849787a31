r"""Products of plane rotations, and the modReLU that goes with them, for EURNN and GORU.

A rotation of the coordinates p and q replaces

.. math::
    \begin{pmatrix} h_p \\ h_q \end{pmatrix} \leftarrow \begin{pmatrix} e^{i\phi}\cos\theta &
    -e^{i\phi}\sin\theta \\ \sin\theta & \cos\theta \end{pmatrix}
    \begin{pmatrix} h_p \\ h_q \end{pmatrix},

where :math:`\phi = 0` for real numbers. A layer rotates disjoint pairs at once, and the layers
multiply as printed, :math:`F_1 F_2 \cdots F_L`: the last one acts first. Complex numbers are real
tensors with the real part above the imaginary one, ``(2, batch, units)``.

References:
    Jing et al. (2017), Tunable efficient unitary neural networks, arXiv:1612.05231, section 4;
    Arjovsky et al. (2016), arXiv:1511.06464, for the modReLU.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from attractor.cells.base import positive
from attractor.checks import plain
from attractor.errors import InputError


class RotationLayer(NamedTuple):
    """Which pairs one layer rotates: from coordinate `first` on, `groups` of 2 * `distance`.

    Within a group, coordinate j is paired with j + `distance`. Angle number
    ``group * distance + j`` belongs to that pair. Coordinates left over are not touched.
    """

    first: int
    groups: int
    distance: int

    @property
    def pairs(self) -> int:
        """How many, which is also how many angles."""
        return self.groups * self.distance


Layout = tuple[RotationLayer, ...]

DENSE = 512
"""Units up to which one product with the whole matrix is faster than with layer after layer."""


def pays(size: int, steps: int) -> bool:
    """Whether to compute the matrix once for all steps; a traced graph keeps to the layers."""
    return not torch.compiler.is_compiling() and size <= DENSE and steps > 1


def layout(owner: type, size: int, capacity: int | None) -> Layout:
    """The layers of a rotation of `size` coordinates.

    Without a `capacity`, FFT-style: log2(size) layers, after which each coordinate has met each
    other. Otherwise `capacity` layers of neighbours: (0,1), (2,3), ..., then (1,2), (3,4), ...

    Example:
        >>> layout(object, 8, None)[0]
        RotationLayer(first=0, groups=1, distance=4)
        >>> [layer.pairs for layer in layout(object, 6, 3)]
        [3, 2, 3]
    """
    size = plain(size)
    if capacity is None:
        levels = size.bit_length() - 1
        if size < 2 or 2**levels != size:
            below, above = max(2, 2**levels), 2 ** (levels + 1)
            raise InputError(
                f"{owner.__name__} expects hidden_size to be a power of two of at least 2, but got "
                f"{size}. Try {below} or {above}, or capacity=2 for any other size."
            )
        return tuple(
            RotationLayer(0, 2 ** (level - 1), size // 2**level) for level in range(1, levels + 1)
        )
    capacity = positive(owner, "capacity", capacity)
    if size < 2:
        raise InputError(
            f"{owner.__name__} expects hidden_size to be at least 2, to have a pair to rotate, "
            f"but got {size}."
        )
    return tuple(RotationLayer(level % 2, (size - level % 2) // 2, 1) for level in range(capacity))


def angles(layers: Layout) -> int:
    """How many angles all layers take, in one vector, layer 1 first."""
    return sum(layer.pairs for layer in layers)


def rotate(h: Tensor, layers: Layout, theta: Tensor, phi: Tensor | None = None) -> Tensor:
    """The product of all layers with h.

    Shape:
        h ``(..., units)``, or ``(2, batch, units)`` where `phi` is given; theta and phi
        ``(angles(layers),)``; the result is as h.

    Example:
        >>> quarter = torch.full((1,), torch.pi / 2)
        >>> rotate(torch.tensor([1.0, 0.0]), layout(object, 2, None), quarter).round()
        tensor([-0., 1.])
    """
    sizes = [layer.pairs for layer in layers]
    cos, sin = torch.split(theta.cos(), sizes), torch.split(theta.sin(), sizes)
    if phi is not None:
        phase_cos, phase_sin = torch.split(phi.cos(), sizes), torch.split(phi.sin(), sizes)
    for index in reversed(range(len(layers))):
        first, groups, distance = layers[index]
        last, form = first + 2 * groups * distance, (groups, distance)
        p, q = torch.unflatten(h[..., first:last], -1, (groups, 2, distance)).unbind(-2)
        p, q = _turn(p, q, cos[index].view(form), sin[index].view(form))
        if phi is not None:
            c, s = phase_cos[index].view(form), phase_sin[index].view(form)
            p = torch.stack(_turn(p[0], p[1], c, s))
        turned = torch.stack((p, q), dim=-2).flatten(-3)
        if first == 0 and last == h.shape[-1]:
            h = turned
        else:
            h = torch.cat((h[..., :first], turned, h[..., last:]), dim=-1)
    return h


def matrix(
    size: int, layers: Layout, theta: Tensor, phi: Tensor | None = None, omega: Tensor | None = None
) -> Tensor:
    r"""The product of all layers, and of :math:`e^{i\omega}`, as one matrix W.

    Complex numbers are real ones followed by imaginary ones, so that W is real all the same.

    Shape:
        ``(size, size)``, or twice that for complex numbers, for ``F.linear(h, W)``.

    Example:
        >>> quarter = torch.full((1,), torch.pi / 2)
        >>> matrix(2, layout(object, 2, None), quarter).round()
        tensor([[-0., -1.],
                [ 1., -0.]])
    """
    units = torch.eye(size, dtype=theta.dtype, device=theta.device)
    if phi is None or omega is None:
        return rotate(units, layers, theta).mT
    turned = turn(rotate(torch.stack((units, torch.zeros_like(units))), layers, theta, phi), omega)
    re, im = turned.mT.unbind()
    return torch.cat((torch.cat((re, -im), 1), torch.cat((im, re), 1)))


def turn(z: Tensor, angle: Tensor) -> Tensor:
    r"""Multiply complex z ``(2, batch, units)`` by :math:`e^{i\,angle}`."""
    return torch.stack(_turn(z[0], z[1], angle.cos(), angle.sin()))


def _turn(a: Tensor, b: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    return cos * a - sin * b, sin * a + cos * b


def modrelu(z: Tensor, b: Tensor | None, eps: float) -> Tensor:
    r"""Shift the modulus of real numbers, and keep their sign; without b, do nothing.

    .. math::
        \mathrm{sign}(z) \, \mathrm{ReLU}(|z| + \epsilon + b)
    """
    return z if b is None else z.sign() * torch.relu(z.abs() + (b + eps))


def complex_modrelu(z: Tensor, b: Tensor | None, eps: float) -> Tensor:
    r"""Shift the modulus of complex numbers ``(2, batch, units)``, and keep their phase.

    Without b, do nothing.

    .. math::
        \frac{z}{|z| + \epsilon} \, \mathrm{ReLU}(|z| + \epsilon + b)
    """
    if b is None:
        return z
    # the tiny term is far below eps; it gives the root a gradient at zero, where states begin
    modulus = (z.square().sum(0) + 1e-24).sqrt() + eps
    return z * (torch.relu(modulus + b) / modulus)
