"""A checksum of the data that a run works on."""

import hashlib
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor


def checksum(source: object) -> str:
    """A hash of every tensor in a task or a stream, wherever in it they are.

    Tensors that share memory count once. What is made up as it is drawn has no tensors, and the
    hash of nothing.

    Example:
        >>> checksum([torch.tensor([1, 2]), {"y": torch.tensor(3.0)}])
        '06c42c52e2b642ca'
    """
    digest = hashlib.sha256()
    memory: dict[int, int] = {}
    for tensor in _tensors(source, set()):
        storage = tensor.untyped_storage()
        new = storage.data_ptr() not in memory
        place = memory.setdefault(storage.data_ptr(), len(memory)), tensor.storage_offset()
        form = tensor.dtype, tuple(tensor.shape), tensor.stride()
        digest.update(f"{place} {form}".encode())
        if new:
            raw = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
            digest.update(raw.cpu().numpy().data)
    return digest.hexdigest()[:16]


def _tensors(source: Any, seen: set[int]) -> Iterator[Tensor]:
    if isinstance(source, Tensor):
        yield source
        return
    if isinstance(source, np.ndarray):
        yield torch.from_numpy(np.array(source)) if source.dtype.kind in "biufc" else torch.empty(0)
        return
    if id(source) in seen:
        return
    inner: list[Any] = []
    if isinstance(source, Mapping):
        inner = list(source.values())
    elif isinstance(source, list | tuple):
        inner = list(source)
    elif isinstance(source, partial):
        inner = [*source.args, *source.keywords.values()]
    elif not type(source).__module__.startswith(("builtins", "torch.nn", "torch.optim")):
        inner = list(getattr(source, "__dict__", {}).values())
        inner += [getattr(source, name, None) for name in getattr(source, "__slots__", ())]
    if inner:
        seen.add(id(source))
    for one in inner:
        yield from _tensors(one, seen)
