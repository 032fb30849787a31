"""A window of Gaussian filters on an image, which attention moves and widens."""

from typing import NamedTuple

import torch
from torch import Tensor


class Window(NamedTuple):
    """Filters of rows ``(batch, n, height)`` and columns ``(batch, n, width)``, and a strength."""

    rows: Tensor
    columns: Tensor
    strength: Tensor

    def read(self, images: Tensor) -> Tensor:
        """The patch ``(batch, channels, n, n)`` of images ``(batch, channels, height, width)``."""
        rows, columns = self.rows.unsqueeze(1), self.columns.unsqueeze(1)
        return self.strength * (rows @ images @ columns.mT)

    def write(self, patch: Tensor) -> Tensor:
        """What a patch ``(batch, channels, n, n)`` adds to a canvas."""
        rows, columns = self.rows.unsqueeze(1), self.columns.unsqueeze(1)
        return (rows.mT @ patch @ columns) / self.strength


def window(parameters: Tensor, n: int, height: int, width: int) -> Window:
    r"""The n x n window that five numbers of a sample describe.

    .. math::
        (\tilde g_X, \tilde g_Y, \ln \sigma^2, \ln \tilde\delta, \ln \gamma) &= \text{parameters} \\
        g_X = \tfrac{A + 1}{2}(\tilde g_X + 1), \quad g_Y &= \tfrac{B + 1}{2}(\tilde g_Y + 1),
            \quad \delta = \tfrac{\max(A, B) - 1}{N - 1} \tilde\delta \\
        \mu^i_X = g_X + (i - \tfrac{N}{2} - \tfrac{1}{2}) \delta, \quad
        F_X[i, a] &\propto \exp\Big(-\frac{(a - \mu^i_X)^2}{2 \sigma^2}\Big)

    for an image of width A and height B, with i from 1 to N, a from 1 to A, and the weights of each
    filter summing to 1.

    Args:
        parameters: the five numbers.
        n: N, rows and columns of the patch.
        height: B.
        width: A.

    Shape:
        parameters ``(batch, 5)``.

    Example:
        >>> found = window(torch.zeros(2, 5), 3, 8, 6)
        >>> found.rows.shape, found.columns.shape
        (torch.Size([2, 3, 8]), torch.Size([2, 3, 6]))
    """
    x, y, log_variance, log_stride, log_strength = parameters.unsqueeze(-1).unbind(1)
    stride = (max(height, width) - 1) / max(n - 1, 1) * log_stride.exp()
    offsets = torch.arange(1, n + 1, device=parameters.device) - n / 2 - 0.5

    def filters(centre: Tensor, size: int) -> Tensor:
        means = ((size + 1) / 2 * (centre + 1) + offsets * stride).unsqueeze(-1)
        places = torch.arange(1, size + 1, device=parameters.device, dtype=parameters.dtype)
        scaled = -(places - means).square() / (2 * log_variance.exp().unsqueeze(-1))
        # a softmax is the same as dividing by the sum, and stays finite where a filter is narrow
        return scaled.softmax(-1)

    strength = log_strength.exp()[..., None, None]
    return Window(filters(y, height), filters(x, width), strength)
