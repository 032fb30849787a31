"""The multilayer perceptron."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal, get_args

import torch
from torch import Generator, Tensor, nn

from attractor.cells.init import uniform_
from attractor.errors import InputError, unknown

Activation = Literal["relu", "sigmoid", "tanh"]
Start = Literal["torch", "xavier"]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}


def linear(
    inputs: int,
    outputs: int,
    *,
    init: Start = "torch",
    generator: Generator | None = None,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> nn.Linear:
    """A linear layer with weights from a generator.

    Args:
        inputs: features in.
        outputs: features out.
        init: ``"torch"`` is U(±1/sqrt(inputs)) for weights and biases, as in ``nn.Linear``;
            ``"xavier"`` is Glorot and Bengio's (2010) uniform form, with biases of zero.
        generator: draws the weights; ``None`` means torch's default generator.

    Example:
        >>> linear(3, 2, init="xavier").bias.tolist()
        [0.0, 0.0]
    """
    if init not in get_args(Start):
        raise unknown("init", init, get_args(Start))
    made = nn.Linear(inputs, outputs, device=device, dtype=dtype)
    if init == "torch":
        uniform_(made.weight, inputs**-0.5, generator)
        uniform_(made.bias, inputs**-0.5, generator)
    else:
        uniform_(made.weight, (6 / (inputs + outputs)) ** 0.5, generator)
        nn.init.zeros_(made.bias)
    return made


class MLP(nn.Module):
    r"""Multilayer perceptron: linear layers with an activation between them.

    .. math::
        h_0 = x, \qquad h_l = a(W_l h_{l-1} + b_l), \qquad y = W_L h_{L-1} + b_L

    Args:
        sizes: features of the input, of each hidden layer and of the output.
        activation: :math:`a`: ``"relu"``, ``"sigmoid"`` or ``"tanh"``.
        dropout: how often a hidden unit is silenced in training.
        init: ``"torch"`` (as ``nn.Linear``) or ``"xavier"`` (uniform, biases of zero).
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, ...)`` with ``sizes[0]`` features in all; y ``(batch, sizes[-1])``.

    Example:
        >>> model = MLP([784, 32, 10])
        >>> sum(p.numel() for p in model.parameters())
        25450
        >>> model(torch.zeros(5, 28, 28)).shape
        torch.Size([5, 10])
    """

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        activation: Activation = "relu",
        dropout: float = 0.0,
        init: Start = "torch",
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if len(sizes) < 2 or min(sizes) < 1:
            raise InputError(
                "expected the sizes of the input, hidden layers and output of an MLP, all at least "
                f"1, but got {list(sizes)}. Try [784, 32, 10]."
            )
        if activation not in ACTIVATIONS:
            raise unknown("activation", activation, ACTIVATIONS)
        self.activation = activation
        self.layers = nn.ModuleList(
            linear(a, b, init=init, generator=generator, device=device, dtype=dtype)
            for a, b in pairwise(sizes)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        h = x.flatten(1)
        for layer in self.layers[:-1]:
            h = self.dropout(ACTIVATIONS[self.activation](layer(h)))
        y: Tensor = self.layers[-1](h)
        return y
