"""The multilayer perceptron with residual connections."""

from collections.abc import Sequence

import torch
from torch import Generator, Tensor, nn

from attractor.models.hcn import equal_width
from attractor.models.mlp import Start, linear


class ResMLP(nn.Module):
    r"""Multilayer perceptron whose hidden layers add to what came before them.

    .. math::
        n_1 &= \mathrm{ReLU}(W_1 x + b_1) \\
        n_l &= n_{l-1} + \mathrm{ReLU}(W_l n_{l-1} + b_l) \\
        y &= W_y n_L + b_y

    Args:
        sizes: features of the input, of each hidden layer (all the same) and of the output.
        dropout: how often a hidden unit is silenced in training.
        init: ``"xavier"`` (uniform, biases of zero) or ``"torch"`` (as ``nn.Linear``).
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, ...)`` with ``sizes[0]`` features in all; y ``(batch, sizes[-1])``.

    Example:
        >>> model = ResMLP([784, 100, 100, 10])
        >>> sum(p.numel() for p in model.parameters())
        89610

    Departs from the paper: nothing.

    References:
        Kuo (2021), thesis, section 6.2.4, figure 6.10 and equation 2.1; He et al. (2016), Deep
        residual learning for image recognition.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        dropout: float = 0.0,
        init: Start = "xavier",
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        width = equal_width("ResMLP", sizes)

        def layer(inputs: int, outputs: int) -> nn.Linear:
            return linear(
                inputs, outputs, init=init, generator=generator, device=device, dtype=dtype
            )

        self.first = layer(sizes[0], width)
        self.layers = nn.ModuleList(layer(width, width) for _ in range(len(sizes) - 3))
        self.last = layer(width, sizes[-1])
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n = self.dropout(torch.relu(self.first(x.flatten(1))))
        for layer in self.layers:
            n = n + self.dropout(torch.relu(layer(n)))
        y: Tensor = self.last(n)
        return y
