"""State as tensors and JSON, which a file can hold without pickling: the one packing there is.

What is not JSON is marked by an object with one key: ``{"$tensor": name}``, ``{"$tuple": [...]}``,
``{"$float": "inf"}`` and ``{"$pairs": [[key, value], ...]}``, a dictionary whose keys are not all
texts (as in the state of torch's optimisers) or begin with a dollar sign.
"""

import math
from collections.abc import Iterable
from typing import Any

from torch import Tensor

Nested = Any
"""Tensors, texts, numbers, booleans and None, in dictionaries, lists and tuples."""


def pack(state: Nested) -> tuple[dict[str, Tensor], Any]:
    """The tensors of a state by their path, and the rest as values that JSON can hold.

    A tensor that is there twice is packed once, and is one tensor again after `unpack`.

    Args:
        state: tensors, plain values, dictionaries (with plain keys), lists and tuples.

    Example:
        >>> import torch
        >>> tensors, rest = pack({"model": {"w": torch.ones(2)}, "task": 3, "best": float("inf")})
        >>> tensors
        {'model/w': tensor([1., 1.])}
        >>> rest
        {'model': {'w': {'$tensor': 'model/w'}}, 'task': 3, 'best': {'$float': 'inf'}}
    """
    tensors: dict[str, Tensor] = {}
    return tensors, _packed(state, (), tensors, {})


def unpack(tensors: dict[str, Tensor], rest: Any) -> Nested:
    """The state that `pack` took apart.

    Example:
        >>> import torch
        >>> unpack(*pack({"a": [torch.tensor(1), "b"], 7: (float("-inf"), None)}))
        {'a': [tensor(1), 'b'], 7: (-inf, None)}
    """
    if isinstance(rest, list):
        return [unpack(tensors, value) for value in rest]
    if not isinstance(rest, dict):
        return rest
    match rest:
        case {"$tensor": name}:
            return tensors[name]
        case {"$tuple": values}:
            return tuple(unpack(tensors, value) for value in values)
        case {"$float": text}:
            return float(text)
        case {"$pairs": pairs}:
            return {_hashable(key): unpack(tensors, value) for key, value in pairs}
    return {key: unpack(tensors, value) for key, value in rest.items()}


def cloned(state: Nested) -> Nested:
    """The same state with tensors of its own, which later steps do not change."""
    tensors, rest = pack(state)
    return unpack({name: tensor.clone() for name, tensor in tensors.items()}, rest)


def _packed(
    state: Nested, path: tuple[str, ...], tensors: dict[str, Tensor], names: dict[int, str]
) -> Any:
    def each(items: Iterable[tuple[Any, Nested]]) -> list[tuple[Any, Any]]:
        return [(key, _packed(one, (*path, str(key)), tensors, names)) for key, one in items]

    if isinstance(state, Tensor):
        return {"$tensor": _named(state, "/".join(path), tensors, names)}
    if isinstance(state, dict):
        if all(isinstance(key, str) and not key.startswith("$") for key in state):
            return dict(each(state.items()))
        return {"$pairs": [[_key(key), value] for key, value in each(state.items())]}
    if isinstance(state, list | tuple):
        values = [value for _, value in each(enumerate(state))]
        return values if isinstance(state, list) else {"$tuple": values}
    if isinstance(state, float) and not math.isfinite(state):
        return {"$float": str(float(state))}
    if state is None or isinstance(state, bool | int | float | str):
        return state
    raise TypeError(
        f"expected tensors and plain values in a state, but got {type(state).__name__} at "
        f"{'/'.join(path) or 'its root'}."
    )


def _named(tensor: Tensor, name: str, tensors: dict[str, Tensor], names: dict[int, str]) -> str:
    """The name of a tensor: its path, and a mark if the slashes in a key led to the same one."""
    if id(tensor) not in names:
        while name in tensors:
            name += "'"
        tensors[name], names[id(tensor)] = tensor, name
    return names[id(tensor)]


def _key(key: object) -> Any:
    if isinstance(key, tuple):
        return [_key(one) for one in key]
    if key is None or isinstance(key, bool | int | str):
        return key
    raise TypeError(f"expected a text or a whole number as a key, but got {key!r}.")


def _hashable(key: Any) -> Any:
    return tuple(map(_hashable, key)) if isinstance(key, list) else key
