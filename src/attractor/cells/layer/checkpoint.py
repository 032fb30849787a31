"""Weights that a layer of torch.nn has saved, under the names and in the form of ours."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor, nn

from attractor.cells.gru import GRUCell
from attractor.cells.lstm import LSTMCell
from attractor.cells.rnn import RNNCell
from attractor.errors import InputError

_NAME = re.compile(r"(weight_ih|weight_hh|weight_hr|bias_ih|bias_hh)_l(\d+)(_reverse)?")


def saved_by_torch(names: Iterable[str]) -> bool:
    """Whether names such as ``weight_ih_l0`` are among these."""
    return any(_NAME.fullmatch(name) for name in names)


def from_torch(
    cells: Iterable[Any], directions: int, saved: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Rename and rearrange what an ``nn.RNN``, ``nn.LSTM`` or ``nn.GRU`` has saved.

    Torch's two biases, which are added, become one. The rows of a GRU's z change their sign, since
    torch's keeps the old state and ours lets the new one in. What has no place in the cells keeps
    its name, so that whoever loads the result refuses it.

    Args:
        cells: the cells of a `Recurrent`, from the first layer on.
        directions: 2 if the layer is bidirectional, otherwise 1.
        saved: torch's tensors by torch's names.

    Example:
        >>> list(from_torch([LSTMCell(3, 8)], 1, nn.LSTM(3, 8).state_dict()))
        ['cells.0.weight_ih', 'cells.0.weight_hh', 'cells.0.bias']
    """
    rest, found = dict(saved), {}
    for index, cell in enumerate(cells):
        check_form(cell)
        layer, reverse = divmod(index, directions)
        suffix = f"_l{layer}" + ("_reverse" if reverse else "")
        for name, tensor in _own(cell, rest, suffix).items():
            found[f"cells.{index}.{name}"] = tensor
    return found | rest


def _own(cell: Any, rest: dict[str, Tensor], suffix: str) -> dict[str, Tensor]:
    """Take what belongs to one cell out of `rest`."""
    own = {}
    for name in ("weight_ih", "weight_hh", "weight_hr"):
        if name + suffix in rest and getattr(cell, name, None) is not None:
            own[name] = rest.pop(name + suffix)
    names = ("bias_ih" + suffix, "bias_hh" + suffix)
    if cell.bias is not None and all(name in rest for name in names):
        outer, inner = (rest.pop(name) for name in names)
        if isinstance(cell, GRUCell):
            n = 2 * cell.hidden_size
            own["bias_hh"] = inner[n:]
            own["bias"] = outer.clone()
            own["bias"][:n] += inner[:n]
        else:
            own["bias"] = outer + inner
    if isinstance(cell, GRUCell):
        z = slice(cell.hidden_size, 2 * cell.hidden_size)
        for name in own.keys() - {"bias_hh"}:
            own[name] = own[name].clone()
            own[name][z] *= -1
    return own


def check_form(cell: nn.Module) -> None:
    """Raise unless the equations of the cell are those of one of torch's layers."""
    if not isinstance(cell, RNNCell | LSTMCell | GRUCell):
        raise InputError(
            "expected an RNN, LSTM or GRU to load the weights of torch's (weight_ih_l0 and so on) "
            f"into, but got {type(cell).__name__}. Try attractor.LSTM, or a file saved from this "
            "layer."
        )
    if isinstance(cell, RNNCell) and cell.margin is not None:
        raise InputError(
            "expected an RNN with free weights, as torch's has, but got margin="
            f"{cell.margin}. Leave margin out."
        )
    if isinstance(cell, GRUCell) and cell.reset != "after":
        raise InputError(
            "expected a GRU that resets after the matmul, as torch's does, but got "
            'reset="before". Try GRU(..., reset="after").'
        )
