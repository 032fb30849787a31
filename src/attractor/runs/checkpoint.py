"""Checkpoints: a state in one file, verified, never unpickled.

The plain values are in the header of the same safetensors file as the tensors, because one rename
is atomic and two are not.
"""

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from attractor.files import explained, write_atomic
from attractor.state import Nested, pack, unpack

logger = logging.getLogger(__name__)

CURRENT = "checkpoint.safetensors"
PREVIOUS = "checkpoint.previous.safetensors"


def write(folder: Path, state: Nested) -> None:
    """Save a checkpoint; the one before it is kept, in case this one is ever damaged."""
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
    write_state(current, state)


def candidates(folder: Path) -> Iterator[Nested]:
    """The checkpoints that are whole, the newest first."""
    for name in (CURRENT, PREVIOUS):
        path = folder / name
        found = read_state(path)
        if found is not None:
            yield found
        elif path.exists():
            logger.warning(
                "%s is damaged or of an older release; going back to what was before it", path
            )


def write_state(path: Path, state: Nested) -> None:
    """A state as one safetensors file with a checksum, replaced at once."""
    tensors, rest = pack(state)
    own = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    seen: set[int] = set()
    for name, tensor in own.items():
        place = tensor.untyped_storage().data_ptr()
        if place in seen:  # the file wants each tensor in memory of its own
            own[name] = tensor.clone()
        seen.add(place)
    text = json.dumps(rest)
    write_atomic(path, save(own, metadata={"state": text, "sha256": _digest(own, text)}))


def read_state(path: Path) -> Nested | None:
    """What `write_state` wrote, or None if it is not there or not whole."""
    try:
        with safe_open(path, "pt") as file:
            header = file.metadata() or {}
            # copies: what is mapped from the file would change with it, and be misaligned
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
        text = header["state"]
        whole = header.get("sha256") == _digest(tensors, text)
        return unpack(tensors, json.loads(text)) if whole else None
    except (OSError, SafetensorError, KeyError, ValueError, RuntimeError):
        return None


def _digest(tensors: dict[str, Tensor], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
