"""Copy weights between attractor's layers and those of torch.nn."""

from typing import Any

import torch
from torch import Tensor, nn

from attractor.cells.gru import GRUCell
from attractor.cells.layer.checkpoint import check_form
from attractor.cells.layer.recurrent import Recurrent
from attractor.cells.lstm import LSTMCell
from attractor.cells.rnn import RNNCell
from attractor.errors import InputError

TorchLayer = nn.RNN | nn.LSTM | nn.GRU


def copy_from_torch(layer: Recurrent, source: TorchLayer) -> Recurrent:
    """Give `layer` the weights of a torch layer of the same kind and sizes.

    For weights in a file, ``layer.load_state_dict`` takes what torch's layer has saved.

    Example:
        >>> theirs, ours = nn.LSTM(3, 8), Recurrent("lstm", 3, 8)
        >>> x = torch.randn(5, 2, 3)
        >>> bool(torch.allclose(copy_from_torch(ours, theirs)(x)[0], theirs(x)[0], atol=1e-6))
        True
    """
    _check_alike(layer, source)
    layer.load_state_dict(source.state_dict())
    return layer


@torch.no_grad()
def copy_to_torch(layer: Recurrent, target: TorchLayer) -> TorchLayer:
    """Give a torch layer of the same kind and sizes the weights of `layer`.

    Torch's second bias, which is added to the first, becomes zero.
    """
    _check_alike(layer, target)
    for cell, weights in _paired(layer, target):
        sign = _gate_signs(cell, weights["weight_ih"])
        weights["weight_ih"].copy_(cell.weight_ih * sign[:, None])
        weights["weight_hh"].copy_(cell.weight_hh * sign[:, None])
        if cell.bias is not None:
            weights["bias_ih"].copy_(cell.bias * sign)
            weights["bias_hh"].zero_()
            if isinstance(cell, GRUCell):
                assert cell.bias_hh is not None
                weights["bias_hh"][2 * cell.hidden_size :] = cell.bias_hh
        if isinstance(cell, LSTMCell) and cell.weight_hr is not None:
            weights["weight_hr"].copy_(cell.weight_hr)
    return target


def _paired(
    layer: Recurrent, other: TorchLayer
) -> list[tuple[RNNCell | LSTMCell | GRUCell, dict[str, Tensor]]]:
    """Each cell with torch's parameters of the same place, by their short names."""
    pairs = []
    for index, cell in enumerate(layer.cells):
        level, direction = divmod(index, layer.num_directions)
        suffix = f"_l{level}" + ("_reverse" if direction else "")
        assert isinstance(cell, RNNCell | LSTMCell | GRUCell)
        weights: dict[str, Tensor] = {
            name.removesuffix(suffix): parameter
            for name, parameter in other.named_parameters()
            if name.endswith(suffix)
        }
        pairs.append((cell, weights))
    return pairs


def _gate_signs(cell: nn.Module, like: Tensor) -> Tensor:
    """Minus one for the rows of a GRU's z, which in torch keeps the old state."""
    sign = like.new_ones(like.shape[0])
    if isinstance(cell, GRUCell):
        sign[cell.hidden_size : 2 * cell.hidden_size] = -1
    return sign


def _check_alike(layer: Recurrent, other: TorchLayer) -> None:
    kinds: dict[type, type[TorchLayer]] = {RNNCell: nn.RNN, LSTMCell: nn.LSTM, GRUCell: nn.GRU}
    cell = layer.cells[0]
    expected = kinds.get(type(cell))
    if expected is None or not isinstance(other, expected):
        raise InputError(
            f"expected layers of the same kind (RNN, LSTM or GRU), but got {type(cell).__name__} "
            f"and torch's {type(other).__name__}."
        )
    names = ("input_size", "num_layers", "bidirectional")
    alike = all(getattr(layer, name) == getattr(other, name) for name in names)
    form = (type(cell), other.hidden_size, other.proj_size, other.bias)
    nonlinearity = getattr(other, "nonlinearity", "tanh")
    cells: Any = layer.cells
    for one in cells:
        check_form(one)
        alike &= not _extras(one) and nonlinearity == getattr(one, "nonlinearity", "tanh")
        found = (one.hidden_size, getattr(one, "proj_size", 0), one.bias is not None)
        alike &= form == (type(one), *found)
    if layer.initial is not None or not alike:
        raise InputError(
            f"expected a torch layer of the same sizes and options, but got {layer} and {other}."
        )


def _extras(cell: nn.Module) -> bool:
    """Whether a cell has parts that torch's layers have not."""
    normalised = isinstance(cell, RNNCell) and (cell.norm is not None or cell.margin is not None)
    return normalised or (isinstance(cell, LSTMCell) and cell.peephole is not None)
