"""Networks that have lost weights, as M2SGD leaves them: counted, saved small, and made smaller."""

import copy
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from attractor.errors import InputError
from attractor.files import write_atomic

M = TypeVar("M", bound=nn.Module)

HEADER = {"attractor": "sparse", "version": "1"}
PARTS = ("mask", "values", "shape")
ACTIVATIONS = ("relu", "sigmoid", "tanh")


def sparsity(model: nn.Module) -> float:
    """The share of a network's parameters that are exactly zero.

    Example:
        >>> layer = nn.Linear(3, 1)
        >>> _ = layer.weight.data.zero_()
        >>> sparsity(layer)
        0.75
    """
    parameters = list(model.parameters())
    zeros = sum(int((p == 0).sum()) for p in parameters)
    return zeros / max(sum(p.numel() for p in parameters), 1)


def sparse_state_dict(model: nn.Module) -> dict[str, Tensor]:
    """A ``state_dict`` in which zeros take one bit; `dense_state_dict` undoes it bit for bit.

    A tensor that is smaller so becomes three: which of its numbers are kept, eight to a byte; the
    kept ones; its shape. The others stay as they are.

    Example:
        >>> layer = nn.Linear(100, 1)
        >>> _ = layer.weight.data[:, 1:].zero_()
        >>> [(name, t.numel()) for name, t in sparse_state_dict(layer).items()][:2]
        [('weight:mask', 13), ('weight:values', 1)]
    """
    packed: dict[str, Tensor] = {}
    for name, tensor in model.state_dict().items():
        if ":" in name:
            raise InputError(f"expected names without a colon, but got {name!r}. Rename it.")
        packed |= _pack(name, tensor.detach().cpu())
    return packed


def dense_state_dict(packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The ``state_dict`` of which `sparse_state_dict` made this."""
    dense: dict[str, Tensor] = {}
    for key, tensor in packed.items():
        name, _, part = key.partition(":")
        if not part:
            dense[name] = tensor.clone()
        elif part == PARTS[0]:
            shape = packed[f"{name}:shape"].tolist()
            kept = np.unpackbits(tensor.numpy(), count=int(np.prod(shape)))
            values = packed[f"{name}:values"]
            filled = torch.zeros(kept.size, dtype=values.dtype)
            filled[torch.from_numpy(kept).bool()] = values
            dense[name] = filled.view(shape)
    return dense


def save_sparse(model: nn.Module, path: str | Path) -> None:
    """Write a network's ``state_dict`` with one bit for each zero.

    Args:
        model: what to save.
        path: a file that ends in ``.safetensors``.

    Example:
        >>> import tempfile
        >>> layer = nn.Linear(1000, 1)
        >>> _ = layer.weight.data[:, 300:].zero_()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_sparse(layer, f"{folder}/pruned.safetensors")
        ...     state = load_sparse(f"{folder}/pruned.safetensors")
        >>> torch.equal(state["weight"], layer.weight)
        True
    """
    write_atomic(Path(path), save(sparse_state_dict(model), HEADER))


def load_sparse(path: str | Path) -> dict[str, Tensor]:
    """What `save_sparse` wrote, for ``model.load_state_dict``."""
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            packed = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if header != HEADER:
            raise KeyError("header")
        return dense_state_dict(packed)
    except (SafetensorError, OSError, KeyError, RuntimeError, ValueError) as error:
        raise InputError(
            f"expected a file that attractor.optimisers.save_sparse wrote, but {path} is missing, "
            "damaged or of another kind. Save the network again."
        ) from error


def compact(model: M) -> M:
    """A smaller multilayer perceptron that says the same.

    A hidden unit goes if nothing reads it, or if it reads nothing, for then it is a constant that
    the biases of the next layer take up. Where one goes, others may follow.

    Args:
        model: an `attractor.models.MLP`; it is left as it is.

    Example:
        >>> from attractor.models import MLP
        >>> model = MLP([4, 9, 2])
        >>> _ = model.layers[1].weight.data[:, 3:].zero_()
        >>> compact(model).layers[0]
        Linear(in_features=4, out_features=3, bias=True)
    """
    made = copy.deepcopy(model)
    layers, activation = _perceptron(made)
    activate = getattr(torch, activation)
    with torch.no_grad():
        for before, after in pairwise(layers):
            constant = (before.weight == 0).all(1)
            after.bias.add_(after.weight[:, constant] @ activate(before.bias[constant]))
            after.weight[:, constant] = 0
        for before, after in reversed(list(pairwise(layers))):
            read = (after.weight != 0).any(0)
            read[0] |= not read.any()  # a layer keeps one unit: MLP has none without
            _keep(before, after, read)
    return made


def _keep(before: nn.Linear, after: nn.Linear, units: Tensor) -> None:
    """Take the other units away from between two layers."""
    before.weight = nn.Parameter(before.weight[units].clone())
    before.bias = nn.Parameter(before.bias[units].clone())
    after.weight = nn.Parameter(after.weight[:, units].clone())
    before.out_features = after.in_features = int(units.sum())


def _perceptron(model: nn.Module) -> tuple[list[nn.Linear], str]:
    """The layers and the activation of a multilayer perceptron."""
    layers, activation = getattr(model, "layers", None), getattr(model, "activation", None)
    if (
        not isinstance(layers, nn.ModuleList)
        or not all(isinstance(one, nn.Linear) and one.bias is not None for one in layers)
        or activation not in ACTIVATIONS
    ):
        raise InputError(
            "expected an attractor.models.MLP, whose hidden units can be told apart, but got "
            f"{type(model).__name__}. Save it with save_sparse instead."
        )
    return list(layers), str(activation)  # type: ignore[arg-type]


def _pack(name: str, tensor: Tensor) -> dict[str, Tensor]:
    if tensor.is_floating_point():
        flat = tensor.flatten()
        kept = (flat != 0) | torch.signbit(flat)  # minus zero is a number of its own
        mask = torch.from_numpy(np.packbits(kept.numpy()))
        parts = (mask, flat[kept], torch.tensor(tensor.shape, dtype=torch.int64))
        if sum(part.nbytes for part in parts) < tensor.nbytes:
            return {f"{name}:{part}": t for part, t in zip(PARTS, parts, strict=True)}
    return {name: tensor.clone(memory_format=torch.contiguous_format)}
