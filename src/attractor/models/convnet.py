"""The small convolutional network of the learned-optimiser papers."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells.init import normal_
from attractor.errors import InputError
from attractor.models.mlp import linear


def convolution(
    inputs: int,
    outputs: int,
    kernel_size: int,
    *,
    stride: int = 1,
    generator: Generator | None = None,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> nn.Conv2d:
    """A convolution that keeps the size of an image (or divides it by `stride`), without a bias.

    Weights are normal with variance 2 / (outputs * kernel area).

    Args:
        inputs: channels in.
        outputs: channels out.
        kernel_size: rows and columns of the kernel, an odd number.
        stride: pixels between two answers.
        generator: draws the weights; ``None`` means torch's default generator.

    Example:
        >>> convolution(3, 16, 5, stride=2)(torch.zeros(1, 3, 32, 32)).shape
        torch.Size([1, 16, 16, 16])

    References:
        He et al. (2015), Delving deep into rectifiers, arXiv:1502.01852, section 2.2.
    """
    made = nn.Conv2d(
        inputs,
        outputs,
        kernel_size,
        stride,
        padding=kernel_size // 2,
        bias=False,
        device=device,
        dtype=dtype,
    )
    normal_(made.weight, (2 / (outputs * kernel_size**2)) ** 0.5, generator)
    return made


class ConvNet(nn.Module):
    r"""Convolutions with max pooling, one fully connected layer, and the answer.

    .. math::
        h_0 = x, \qquad
        h_l = \mathrm{pool}(\mathrm{relu}(\mathrm{BN}(K_l * h_{l-1}))), \qquad
        y = V\,\mathrm{relu}(\mathrm{BN}(W h_L + b)) + c

    Pooling takes the largest of 2 by 2 pixels; at an odd border, of those that there are.

    Args:
        shape: channels, rows and columns of an image.
        classes: numbers in the answer.
        channels: of each convolution.
        hidden_size: units of the fully connected layer.
        kernel_size: rows and columns of the kernels, an odd number.
        track: keep running statistics for evaluation. Without, batch norm takes those of the batch
            in evaluation too; many learners at once under ``torch.func.vmap`` need that, as they
            cannot write to buffers.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, *shape)``; y ``(batch, classes)``.

    Example:
        >>> model = ConvNet()
        >>> model(torch.zeros(5, 3, 32, 32)).shape
        torch.Size([5, 10])
        >>> sum(p.numel() for p in model.parameters())
        22714

    Departs from the paper: batch norm has a scale, convolutions have no bias, which batch norm
    would take away again, and weights start as He et al. (2015) and torch have them. The paper
    leaves channels and kernels open; 16 of 5 by 5 are those of the code published with it.

    References:
        Andrychowicz et al. (2016), Learning to learn by gradient descent by gradient descent,
        arXiv:1606.04474, section 3.3.
    """

    def __init__(
        self,
        shape: tuple[int, int, int] = (3, 32, 32),
        classes: int = 10,
        *,
        channels: Sequence[int] = (16, 16, 16),
        hidden_size: int = 32,
        kernel_size: int = 5,
        track: bool = True,
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if min(*shape, classes, *channels, hidden_size, kernel_size) < 1 or kernel_size % 2 == 0:
            raise InputError(
                "expected a ConvNet of sizes of at least 1 and kernels of odd size, but got "
                f"shape={tuple(shape)}, classes={classes}, channels={list(channels)}, "
                f"hidden_size={hidden_size}, kernel_size={kernel_size}. Try ConvNet((3, 32, 32))."
            )
        self.shape = tuple(shape)
        kind: dict[str, Any] = {"device": device, "dtype": dtype}
        self.convolutions = nn.ModuleList(
            convolution(a, b, kernel_size, generator=generator, **kind)
            for a, b in pairwise([shape[0], *channels])
        )
        self.norms = nn.ModuleList(
            nn.BatchNorm2d(size, track_running_stats=track, **kind) for size in channels
        )
        rows, columns = (-(-side // 2 ** len(channels)) for side in shape[1:])
        inputs = [shape[0], *channels][-1] * rows * columns
        self.hidden = linear(inputs, hidden_size, generator=generator, **kind)
        self.hidden_norm = nn.BatchNorm1d(hidden_size, track_running_stats=track, **kind)
        self.readout = linear(hidden_size, classes, generator=generator, **kind)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1:] != self.shape:  # others may come to as many features
            raise InputError(
                f"expected images of shape {self.shape}, but got {tuple(x.shape[1:])}. "
                "Make the network for the images, or set side."
            )
        h = x
        for convolve, norm in zip(self.convolutions, self.norms, strict=True):
            h = F.max_pool2d(torch.relu(norm(convolve(h))), 2, ceil_mode=True)
        h = torch.relu(self.hidden_norm(self.hidden(h.flatten(1))))
        y: Tensor = self.readout(h)
        return y
