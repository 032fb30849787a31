"""Checkpoints: tensors and plain values in one file, verified, never unpickled.

The values are in the header of the same safetensors file as the tensors, because one rename is
atomic and two are not.
"""

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor
from torch.optim import Optimizer

from attractor.files import explained, write_atomic

logger = logging.getLogger(__name__)

CURRENT = "checkpoint.safetensors"
PREVIOUS = "checkpoint.previous.safetensors"


class Checkpoint(NamedTuple):
    """Tensors by name, and values that JSON can hold."""

    tensors: dict[str, Tensor]
    values: dict[str, Any]


def write(folder: Path, checkpoint: Checkpoint) -> None:
    """Save a checkpoint; the one before it is kept, in case this one is ever damaged."""
    tensors = {name: t.detach().cpu().contiguous() for name, t in checkpoint.tensors.items()}
    values = json.dumps(checkpoint.values, sort_keys=True)
    header = {"values": values, "sha256": _digest(tensors, values)}
    current = folder / CURRENT
    with explained(current):
        if current.exists():
            # a second name for the old file: it has both until the new one takes the first
            (folder / PREVIOUS).unlink(missing_ok=True)
            try:
                os.link(current, folder / PREVIOUS)
            except OSError:
                # a file system without second names
                shutil.copyfile(current, folder / PREVIOUS)
    write_atomic(current, save(tensors, metadata=header))


def candidates(folder: Path) -> Iterator[Checkpoint]:
    """The checkpoints that are whole, the newest first."""
    for name in (CURRENT, PREVIOUS):
        path = folder / name
        found = _read(path)
        if found is not None:
            yield found
        elif path.exists():
            logger.warning("%s is damaged; going back to what was before it", path)


def _read(path: Path) -> Checkpoint | None:
    try:
        with safe_open(path, "pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        values = json.loads(header["values"])
    except (OSError, SafetensorError, KeyError, ValueError, RuntimeError):
        return None
    if header.get("sha256") != _digest(tensors, header["values"]):
        return None
    return Checkpoint(tensors, values)


def _digest(tensors: dict[str, Tensor], values: str) -> str:
    digest = hashlib.sha256(values.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def pack_optimiser(optimiser: Optimizer) -> Checkpoint:
    """The state of an optimiser as tensors and values."""
    state = optimiser.state_dict()
    tensors, values = {}, {}
    for index, entries in state["state"].items():
        for name, value in entries.items():
            if isinstance(value, Tensor):
                tensors[f"{index}.{name}"] = value
            else:
                values[f"{index}.{name}"] = value
    return Checkpoint(tensors, {"groups": state["param_groups"], "state": values})


def unpack_optimiser(optimiser: Optimizer, packed: Checkpoint) -> None:
    """Give an optimiser back the state that `pack_optimiser` took."""
    state: dict[int, dict[str, Any]] = {}
    for key, value in [*packed.tensors.items(), *packed.values["state"].items()]:
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    optimiser.load_state_dict({"state": state, "param_groups": packed.values["groups"]})


def merged(parts: dict[str, dict[str, Tensor]]) -> dict[str, Tensor]:
    """Several dictionaries of tensors in one, under prefixes."""
    return {f"{prefix}/{name}": t for prefix, part in parts.items() for name, t in part.items()}


def part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """One of the dictionaries that `merged` put together."""
    start = f"{prefix}/"
    return {name.removeprefix(start): t for name, t in tensors.items() if name.startswith(start)}
