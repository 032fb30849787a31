"""The idx format of MNIST: four bytes of kind, the sizes, then the numbers."""

import math
import struct

import numpy as np
from numpy.typing import NDArray

from attractor.errors import InputError

UNSIGNED_BYTE = 0x08


def idx_size(shape: tuple[int, ...]) -> int:
    """Bytes of an idx file of unsigned bytes.

    Example:
        >>> idx_size((60000, 28, 28))
        47040016
    """
    return 4 + 4 * len(shape) + math.prod(shape)


def parse_idx(content: bytes, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The array of an idx file of unsigned bytes, which must have the given shape.

    The format is two zero bytes, one byte for the type, one for the number of dimensions, each
    dimension as a big-endian 32-bit number, then the numbers, the last dimension fastest.

    Args:
        content: the file, uncompressed.
        shape: the shape to expect.

    Example:
        >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 2, 5, 7]), (2,))
        array([5, 7], dtype=uint8)
    """
    start = 4 + 4 * len(shape)
    if len(content) < start:
        raise InputError(
            f"expected an idx file with a header of {start} bytes, but it ends after {len(content)}"
        )
    magic, *dimensions = struct.unpack(f">{1 + len(shape)}I", content[:start])
    expected = UNSIGNED_BYTE << 8 | len(shape)
    if magic != expected:
        raise InputError(
            f"expected the magic number {expected:#010x} of an idx file of unsigned bytes in "
            f"{len(shape)} dimensions, but it starts with {magic:#010x}"
        )
    if tuple(dimensions) != shape:
        raise InputError(
            f"expected an idx file of shape {shape}, but its header says {tuple(dimensions)}"
        )
    if len(content) != idx_size(shape):
        raise InputError(
            f"expected an idx file of {idx_size(shape):,} bytes for shape {shape}, but it has "
            f"{'more' if len(content) > idx_size(shape) else f'{len(content):,}'}"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy()
