"""The compiled library: found, loaded, and called with the memory of tensors."""

import ctypes
import logging
import os
import weakref
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor

SIZES, NUMBERS, WEIGHTS, STATES = 8, 8, 26, 10
NORMS, MEMORY_NORM = 18, 24  # where among the weights those of layer norms are
VERSION = 3
"""Of the library: kernels that it has and what they are given; ``native/call.hpp`` has it too."""
LIBRARY = Path(__file__).with_name("libattractor.so")
NAMES = {"avx512": "AVX-512", "avx2": "AVX2", "neon": "NEON", "plain": "plain"}
log = logging.getLogger("attractor.kernels")

_Weights, _States = ctypes.c_void_p * WEIGHTS, ctypes.c_void_p * STATES


class Call(ctypes.Structure):
    """As ``Call`` in ``native/call.hpp``, which says what each field is."""

    _fields_ = (
        ("bytes", ctypes.c_int32),
        ("threads", ctypes.c_int32),
        ("steps", ctypes.c_int64),
        ("batch", ctypes.c_int64),
        ("rows", ctypes.c_int64),
        ("running", ctypes.c_void_p),
        ("size", ctypes.c_int64 * SIZES),
        ("number", ctypes.c_double * NUMBERS),
        ("x", ctypes.c_void_p),
        ("weight", _Weights),
        ("state", _States),
        ("constants", ctypes.c_void_p),
        ("keep", _States),
        ("keep_rate", ctypes.c_double * STATES),
        ("noise", ctypes.c_void_p),
        ("tape", ctypes.c_void_p),
        ("output", ctypes.c_void_p),
        ("last", _States),
        ("every", _States),
        ("d_output", ctypes.c_void_p),
        ("d_last", _States),
        ("d_every", _States),
        ("d_x", ctypes.c_void_p),
        ("d_weight", _Weights),
        ("d_state", _States),
    )


class Status(NamedTuple):
    """Whether kernels run, on which path, and if not why."""

    path: str | None
    reason: str

    def __str__(self) -> str:
        if self.path is None:
            return f"off ({self.reason})"
        threads = torch.get_num_threads()
        return f"active ({NAMES[self.path]}, {threads} thread{'s' if threads > 1 else ''})"

    @property
    def advice(self) -> str:
        """What to do to have kernels, in a few words."""
        if self.path is not None:
            return ""
        asked = self.reason.startswith("ATTRACTOR_KERNELS")
        return "unset ATTRACTOR_KERNELS" if asked else "install again, with a C++ compiler"


@cache
def _load() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(str(LIBRARY))
    except OSError as error:
        log.debug("attractor runs without kernels: %s", error)
        return None
    if not _current(library):
        log.debug("attractor runs without kernels: the library is of another version")
        return None
    library.attractor_choose.argtypes = (ctypes.c_char_p,)
    library.attractor_choose.restype = ctypes.c_char_p
    library.attractor_run.argtypes = (ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(Call))
    library.attractor_run.restype = ctypes.c_int64
    library.attractor_take.argtypes = (ctypes.c_size_t,)
    library.attractor_take.restype = ctypes.c_void_p
    library.attractor_give.argtypes = (ctypes.c_void_p,)
    return library


def _current(library: ctypes.CDLL) -> bool:
    """Whether the library was compiled from the sources that this file belongs to."""
    if not hasattr(library, "attractor_version"):
        return False
    library.attractor_version.restype = library.attractor_call_size.restype = ctypes.c_int64
    same = library.attractor_call_size() == ctypes.sizeof(Call)
    return same and bool(library.attractor_version() == VERSION)


def _find() -> Status:
    asked = os.environ.get("ATTRACTOR_KERNELS", "").lower()
    if asked == "off":
        return Status(None, "ATTRACTOR_KERNELS=off")
    library = _load()
    if library is None:
        found = LIBRARY.exists()
        return Status(None, "the library does not load" if found else "not compiled at install")
    chosen = library.attractor_choose(asked.encode())
    if chosen is None:
        log.debug("attractor runs without kernels: no path %r on this machine", asked)
        return Status(None, f"ATTRACTOR_KERNELS={asked} is no path on this machine")
    return Status(chosen.decode(), "")


STATUS = _find()
"""What was found, in the light of what ``ATTRACTOR_KERNELS`` says: off, or the name of a path."""


def library() -> ctypes.CDLL:
    """The library, where `STATUS` has a path."""
    loaded = _load()
    assert loaded is not None
    return loaded


def pointers(
    what: Literal["weights", "states"], tensors: Sequence[Tensor | None]
) -> ctypes.Array[ctypes.c_void_p]:
    """The addresses of tensors, null for those that are not there."""
    array = _Weights if what == "weights" else _States
    return array(*[None if t is None else t.data_ptr() for t in tensors])


def run(kernel: str, call: Call, way: Literal["nowhere", "there", "back"]) -> int:
    """Run a kernel, while other Python threads go on; returns the numbers per row of its tape."""
    width = int(library().attractor_run(kernel.encode(), _WAYS.index(way), ctypes.byref(call)))
    assert width != -1, kernel
    if width == -2:
        raise MemoryError(f"no memory left for the kernel of {kernel}")
    return width


_WAYS = ("nowhere", "there", "back")

KEPT = 1 << 20
"""Bytes from which on memory is worth keeping for the next call."""


def empty(shape: Sequence[int], like: Tensor) -> Tensor:
    """As ``torch.empty``, in memory that is kept from call to call if there is much of it.

    Fresh pages cost ten times as much as a pass over pages that are there already.
    """
    count = 1
    for size in shape:
        count *= size
    if count * like.element_size() < KEPT:
        return like.new_empty(shape)
    bytes_ = count * like.element_size()
    memory = library().attractor_take(bytes_)
    if memory is None:
        raise MemoryError(f"no memory left for {bytes_} bytes")
    buffer = (ctypes.c_char * bytes_).from_address(memory)
    weakref.finalize(buffer, library().attractor_give, memory).atexit = False
    return torch.frombuffer(buffer, dtype=like.dtype, count=count).view(tuple(shape))
