"""Networks with more answers that say the same about those they had."""

from copy import deepcopy

import torch
from torch import Generator, nn

from attractor.checks import whole
from attractor.continual.growing.widening import Growth
from attractor.continual.readouts import readout, replaced
from attractor.errors import InputError


def more_answers(model: nn.Module, outputs: int, *, generator: Generator | None = None) -> Growth:
    r"""A network whose last layer has more outputs; those that it had stay as they are.

    .. math::
        \bar W = \begin{bmatrix} W \\ W' \end{bmatrix}, \qquad
        W'_{ij} \sim U(\pm n^{-1/2})

    Args:
        model: any network that ends with a linear layer; it is left as it is.
        outputs: how many it shall have.
        generator: draws the new weights; ``None`` means torch's default generator.

    Example:
        >>> from attractor.models import MLP
        >>> model = MLP([4, 8, 2])
        >>> wider, x = more_answers(model, 5).model, torch.randn(3, 4)
        >>> wider(x).shape, torch.allclose(wider(x)[:, :2], model(x))
        (torch.Size([3, 5]), True)

    References:
        Kuo (2021), thesis, section 3.3.4 (class-incremental learning).
    """
    wide = deepcopy(model)
    name, layer = readout(wide)
    had = layer.out_features
    if whole("outputs", outputs, 1) <= had:
        raise InputError(
            f"expected more outputs than the {had} that the network has, but got {outputs}. "
            f"Try {had + 1}."
        )
    bound = layer.in_features**-0.5

    def longer(rows: torch.Tensor) -> nn.Parameter:
        fresh = torch.rand(outputs - had, *rows.shape[1:], generator=generator)
        fresh = ((2 * fresh - 1) * bound).to(rows)
        return nn.Parameter(torch.cat([rows.detach(), fresh]), rows.requires_grad)

    layer.weight = longer(layer.weight)
    if layer.bias is not None:
        layer.bias = longer(layer.bias)
    for name_of, rows in layer.named_buffers():  # what it keeps of each class
        zeros = rows.new_zeros(outputs - had, *rows.shape[1:])
        setattr(layer, name_of, torch.cat([rows, zeros]))
    layer.out_features = outputs
    return Growth(replaced(wide, name, layer), {})
