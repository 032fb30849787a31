"""The highway-connection classifier network."""

from collections.abc import Sequence

import torch
from torch import Generator, Tensor, nn

from attractor.errors import InputError
from attractor.models.mlp import Start, linear


class HCN(nn.Module):
    r"""Highway-connection classifier: gates that read the input decide what each layer changes.

    .. math::
        k_1 &= \mathrm{ReLU}(W_1 x + b_1) \\
        T_l &= \sigma(Q_l x + q_l) \\
        k_l &= (1 - T_l) \odot k_{l-1} + T_l \odot \mathrm{ReLU}(W_l k_{l-1} + b_l) \\
        y &= W_y k_L + b_y

    The gradient of :math:`W_l` is scaled by :math:`T_l`, so a layer with a highway is changed less
    by a new task than a plain one.

    Args:
        sizes: features of the input, of each hidden layer (all the same) and of the output.
        dropout: how often a hidden unit is silenced in training.
        init: ``"xavier"`` (uniform, biases of zero) or ``"torch"`` (as ``nn.Linear``).
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, ...)`` with ``sizes[0]`` features in all; y ``(batch, sizes[-1])``.

    Example:
        >>> model = HCN([784, 100, 100, 10])
        >>> sum(p.numel() for p in model.parameters())
        168110
        >>> model(torch.zeros(5, 28, 28)).shape
        torch.Size([5, 10])

    Departs from the paper: the thesis writes the gate as a function of the layer below (equation
    2.3); its code, and figure 6.10, have it read the raw input, and so has this, with a bias that
    starts at zero.

    References:
        Kuo et al. (2021), Plastic and stable gated classifiers for continual learning; Kuo (2021),
        thesis, section 6.2; Srivastava et al. (2015), Highway networks.
    """

    reference = "kuo2021plastic"

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
        width = equal_width("HCN", sizes)

        def layer(inputs: int, outputs: int) -> nn.Linear:
            return linear(
                inputs, outputs, init=init, generator=generator, device=device, dtype=dtype
            )

        highways = len(sizes) - 3
        self.first = layer(sizes[0], width)
        self.layers = nn.ModuleList(layer(width, width) for _ in range(highways))
        self.gates = nn.ModuleList(layer(sizes[0], width) for _ in range(highways))
        self.last = layer(width, sizes[-1])
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x.flatten(1)
        k = self.dropout(torch.relu(self.first(x)))
        for layer, gate in zip(self.layers, self.gates, strict=True):
            changed = self.dropout(torch.relu(layer(k)))
            k = torch.lerp(k, changed, torch.sigmoid(gate(x)))
        y: Tensor = self.last(k)
        return y


def equal_width(name: str, sizes: Sequence[int]) -> int:
    """The width that all hidden layers share, as a connection past a layer needs it."""
    if len(sizes) < 3 or min(sizes) < 1 or len(set(sizes[1:-1])) != 1:
        raise InputError(
            "expected the sizes of the input, of one or more hidden layers that are equally wide, "
            f"and of the output of {name}, but got {list(sizes)}. Try [784, 100, 100, 10]."
        )
    return sizes[1]
