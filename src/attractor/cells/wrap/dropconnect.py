"""Dropout of recurrent weights, drawn anew for each pass over a batch."""

from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from attractor.cells.layer.recurrent import Recurrent
from attractor.cells.wrap.noise import probability
from attractor.errors import InputError


class WeightDrop(nn.Module):
    r"""A recurrent layer whose recurrent weights are dropped in training.

    .. math::
        \tilde U = M \odot U / (1 - p)

    M is zero with probability p and one otherwise, the same for all steps and sequences of one
    call. In evaluation the layer is called as it is. The weights themselves are never changed.

    Args:
        layer: the layer within.
        rate: p.
        names: the last part of the names of the parameters to drop; ``None`` means those that the
            cells say act on their state.

    Example:
        >>> import torch
        >>> layer = weight_drop(Recurrent("lstm", 3, 8), 0.25)
        >>> output, (h, c) = layer(torch.zeros(5, 2, 3))
        >>> layer.dropped
        ('cells.0.weight_hh',)

    Departs from the paper: nothing.

    References:
        Merity et al. (2018), Regularizing and optimizing LSTM language models, arXiv:1708.02182,
        section 2, after Wan et al. (2013), DropConnect.
    """

    def __init__(self, layer: Recurrent, rate: float, names: Sequence[str] | None = None) -> None:
        super().__init__()
        if not isinstance(layer, Recurrent):
            raise InputError(
                f"weight_drop expects a layer of attractor's, but got {type(layer).__name__}. "
                "Try attractor.LSTM in place of nn.LSTM."
            )
        self.layer = layer
        self.rate = probability("weight_drop", "rate", rate)
        self.dropped = _matching(layer, names)

    @property
    def input_size(self) -> int:
        """Features of the input."""
        return self.layer.input_size

    @property
    def output_size(self) -> int:
        """Features of the output."""
        return self.layer.output_size

    def forward(self, input: Any, hx: Any = None, *, return_states: bool = False) -> Any:  # noqa: A002
        """As the layer within."""
        if not self.training or self.rate == 0:
            return self.layer(input, hx, return_states=return_states)
        options = {"return_states": return_states}
        return functional_call(self.layer, self.drop(), (input, hx), options)

    def drop(self) -> dict[str, Tensor]:
        """Draw the weights of one call."""
        weights = dict(self.layer.named_parameters())
        return {name: F.dropout(weights[name], self.rate) for name in self.dropped}

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


def weight_drop(layer: Recurrent, rate: float, names: Sequence[str] | None = None) -> WeightDrop:
    """Drop the recurrent weights of `layer` in training: see `WeightDrop`."""
    return WeightDrop(layer, rate, names)


def recurrent_names(layer: Recurrent) -> tuple[str, ...]:
    """The full names of the matrices that act on the state, as the cells of a layer say.

    Example:
        >>> recurrent_names(Recurrent("lstm", 3, 8)), recurrent_names(Recurrent("urnn", 3, 8))
        (('cells.0.weight_hh',), ())
    """
    wanted = {
        f"{path}.{name}"
        for path, module in layer.named_modules()
        for name in getattr(module, "recurrent_weights", ())
    }
    return tuple(name for name, _ in layer.named_parameters() if name in wanted)


def _matching(layer: Recurrent, names: Sequence[str] | None) -> tuple[str, ...]:
    """The full names of the parameters to drop; none would be dropout that never happens."""
    parameters = [name for name, _ in layer.named_parameters()]
    if names is None:
        found = recurrent_names(layer)
    else:
        found = tuple(name for name in parameters if name.endswith(tuple(f".{n}" for n in names)))
    if not found:
        asked = "their recurrent weights" if names is None else f"the names {', '.join(names)}"
        raise InputError(
            f"weight_drop expects weights to drop, but {asked} match none of "
            f"{', '.join(parameters)}. Try names= with the last part of some of these."
        )
    return found
