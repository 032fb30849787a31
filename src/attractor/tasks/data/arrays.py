"""Arrays of data sets, read from whichever form of their files is there."""

import gzip
import lzma
import zipfile
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from attractor.errors import InputError
from attractor.tasks.data.catalogue import dataset
from attractor.tasks.data.checks import fault, locate
from attractor.tasks.data.idx import idx_size, parse_idx
from attractor.tasks.data.root import VARIABLE, data_root

DAMAGED = (
    EOFError,
    KeyError,
    ValueError,
    gzip.BadGzipFile,
    lzma.LZMAError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What the readers raise on a file that is not what its name says."""


def load_array(name: str, part: str, root: str | Path | None = None) -> NDArray[np.uint8]:
    """One array of a data set.

    A file as published is checked by its sum, any other form by its structure.

    Args:
        name: the data set.
        part: which of its arrays.
        root: the data root; ``None`` follows `data_root`.
    """
    published = dataset(name)
    shape = published.parts[part].shape
    folder = data_root(root)
    found = locate(published.parts[part], folder)
    if found is None:
        raise missing(name, part, folder)
    try:
        wrong = fault(found.path, found.file) if found.file is not None else None
        if wrong is None:
            return read_array(found.path, shape)
    except DAMAGED as error:
        wrong = f"it cannot be read: {error}"
    except OSError as error:
        raise InputError(
            f"expected to read {found.path}, but got: {error.strerror}. "
            "Check its permissions, or choose another folder with --data."
        ) from error
    raise damaged(name, found.path, wrong)


def read_array(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The array of an idx file, plain or compressed, or of an npz file."""
    if path.suffix == ".npz":
        return read_npz(path, shape)
    return parse_idx(read_bytes(path, idx_size(shape)), shape)


def read_bytes(path: Path, size: int) -> bytes:
    """The content of a file, plain or compressed, up to one byte more than it should have.

    The limit keeps a file that unpacks to far too much from filling the memory.
    """
    if path.suffix == ".gz":
        with gzip.open(path) as stream:
            return stream.read(size + 1)
    if path.suffix == ".xz":
        with lzma.open(path) as stream:
            return stream.read(size + 1)
    with path.open("rb") as stream:
        return stream.read(size + 1)


def read_npz(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The only array of an npz file, which must hold unsigned bytes of the given shape."""
    with np.load(path, allow_pickle=False) as arrays:
        array = arrays["arr_0"]
    if array.dtype != np.uint8 or array.shape != shape:
        raise InputError(
            f"expected unsigned bytes of shape {shape}, but it holds {array.dtype} of shape "
            f"{array.shape}"
        )
    found: NDArray[np.uint8] = array
    return found


def missing(name: str, part: str, folder: Path) -> InputError:
    """The error for a part that is not below the data root."""
    published = dataset(name)
    path = folder / published.parts[part].forms[0].path
    return InputError(
        f"expected the {part} of {published.title} at {path} (or the same file unpacked), but "
        f"there is no such file. Pass --data with the folder that holds {path.parts[-3]}, set "
        f"{VARIABLE} to it, or run `attractor data fetch {name}`."
    )


def damaged(name: str, path: Path, wrong: str) -> InputError:
    """The error for a file that is not what was published."""
    return InputError(
        f"expected {path} to be the published file of {dataset(name).title}, but {wrong}. "
        f"Delete it and run `attractor data fetch {name}`."
    )
