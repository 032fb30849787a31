"""States as tensors and plain values, which a file can hold without pickling."""

from typing import Any

from torch import Tensor

MARK = "tensor/"
"""The beginning of the text that stands where a tensor was."""


def split(state: Any, path: str = "") -> tuple[dict[str, Tensor], Any]:
    """The tensors of a nested state by their path, and the rest, in which paths stand for them.

    Args:
        state: dictionaries with texts as keys, lists, tensors, and values that JSON can hold.
        path: of the state in a larger one.

    Example:
        >>> import torch
        >>> tensors, rest = split({"model": {"w": torch.ones(2)}, "task": 3, "many": [None, 0.5]})
        >>> tensors
        {'/model/w': tensor([1., 1.])}
        >>> rest
        {'model': {'w': 'tensor//model/w'}, 'task': 3, 'many': [None, 0.5]}
    """
    if isinstance(state, Tensor):
        return {path: state}, f"{MARK}{path}"
    if isinstance(state, dict):
        parts = {key: split(value, f"{path}/{key}") for key, value in state.items()}
        rest: Any = {key: part for key, (_, part) in parts.items()}
        found = [tensors for tensors, _ in parts.values()]
    elif isinstance(state, list | tuple):
        pairs = [split(value, f"{path}/{place}") for place, value in enumerate(state)]
        rest, found = [part for _, part in pairs], [tensors for tensors, _ in pairs]
    else:
        return {}, state
    return {name: tensor for tensors in found for name, tensor in tensors.items()}, rest


def join(tensors: dict[str, Tensor], rest: Any) -> Any:
    """The state that `split` took apart.

    Example:
        >>> import torch
        >>> join(*split({"a": [torch.tensor(1), "b"]}))
        {'a': [tensor(1), 'b']}
    """
    if isinstance(rest, str) and rest.startswith(MARK):
        return tensors[rest.removeprefix(MARK)]
    if isinstance(rest, dict):
        return {key: join(tensors, value) for key, value in rest.items()}
    if isinstance(rest, list):
        return [join(tensors, value) for value in rest]
    return rest
