"""Arrays and texts of data sets, read from whichever form of their files is there."""

import gzip
import lzma
import math
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from attractor.errors import InputError
from attractor.tasks.data.catalogue import dataset
from attractor.tasks.data.idx import idx_size, parse_idx
from attractor.tasks.data.intact import fault, locate
from attractor.tasks.data.root import VARIABLE, data_root

T = TypeVar("T")

LONGEST_TEXT = 1 << 24
"""Bytes beyond which a text is taken for something else."""

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
    shape = dataset(name).parts[part].shape
    assert shape is not None, f"the {part} of {name} are a text"
    return load_part(name, part, root, lambda path: read_array(path, shape))


def load_lines(name: str, part: str, root: str | Path | None = None) -> list[str]:
    """The lines of one text of a data set; arguments as for `load_array`."""

    def read(path: Path) -> list[str]:
        content = read_bytes(path, LONGEST_TEXT)
        if len(content) > LONGEST_TEXT:
            raise InputError(f"expected a text of at most {LONGEST_TEXT:,} bytes, but it has more")
        return content.decode().splitlines()

    return load_part(name, part, root, read)


def load_part(name: str, part: str, root: str | Path | None, read: Callable[[Path], T]) -> T:
    """What `read` makes of the file that holds a part, once that is known to be intact."""
    published = dataset(name)
    folder = data_root(root)
    found = locate(published.parts[part], folder)
    if found is None:
        raise missing(name, part, folder)
    try:
        wrong = fault(found.path, found.file) if found.file is not None else None
        if wrong is None:
            return read(found.path)
    except DAMAGED as error:
        wrong = f"it cannot be read: {error}"
    except OSError as error:
        raise InputError(
            f"expected to read {found.path}, but got: {error.strerror}. "
            "Check its permissions, or choose another folder with --data."
        ) from error
    raise damaged(name, found.path, wrong)


def read_array(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The array of an npz file, or of an idx or raw file, plain or compressed."""
    if path.suffix == ".npz":
        return read_npz(path, shape)
    if ".bin" in path.suffixes:
        return parse_raw(read_bytes(path, math.prod(shape)), shape)
    return parse_idx(read_bytes(path, idx_size(shape)), shape)


def parse_raw(content: bytes, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The array of a file that holds its unsigned bytes and nothing else.

    Example:
        >>> parse_raw(bytes([5, 7, 9, 11]), (2, 2)).tolist()
        [[5, 7], [9, 11]]
    """
    size = math.prod(shape)
    if len(content) != size:
        raise InputError(
            f"expected a file of {size:,} bytes for shape {shape}, but it has "
            f"{'more' if len(content) > size else f'{len(content):,}'}"
        )
    return np.frombuffer(content, np.uint8).reshape(shape).copy()


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
    path = PurePosixPath(published.parts[part].forms[0].path)
    return InputError(
        f"expected the {part} of {published.title} at {folder / path} (plain or compressed), but "
        f"there is no such file. Pass --data with the folder that holds {path.parts[0]}, set "
        f"{VARIABLE} to it, or run `attractor data fetch {name}`."
    )


def damaged(name: str, path: Path, wrong: str) -> InputError:
    """The error for a file that is not what was published."""
    return InputError(
        f"expected {path} to be the published file of {dataset(name).title}, but {wrong}. "
        f"Delete it and run `attractor data fetch {name}`."
    )
