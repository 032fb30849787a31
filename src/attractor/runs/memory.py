"""Memory that stays with the process: what programs of ours ask of the allocator at their start."""

import ctypes
import os
import platform
from functools import cache

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""Numbers of the options in glibc's ``malloc.h``."""
NEVER = -1
LARGE = 1 << 30
"""Bytes up to which a piece is kept; what is larger still comes from the system each time."""


@cache
def keep_memory() -> bool:
    """Ask glibc to keep freed memory for the next piece instead of giving it back.

    Large tensors otherwise come from the system and go back to it at once, and each is paid for
    in fresh pages: about a third of the time of a long sequence. The price is that the process
    stays as large as it ever was. So programs of ours ask for it, and an import never does.

    Returns:
        Whether there was a glibc to ask, and it agreed.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(MMAP_THRESHOLD, LARGE) and mallopt(TRIM_THRESHOLD, NEVER))


def allocator() -> str:
    """Which allocator this process has, and whether it keeps memory."""
    other = [name for name in ("jemalloc", "tcmalloc", "mimalloc") if name in _preloaded()]
    if other:
        return other[0]
    name = " ".join(platform.libc_ver()).strip() or f"that of {platform.system()}"
    asked = keep_memory.cache_info().currsize and keep_memory()
    return f"{name}, memory {'kept' if asked or _told_by_environment() else 'given back'}"


def _preloaded() -> str:
    return os.environ.get("LD_PRELOAD", "")


def _told_by_environment() -> bool:
    return "MALLOC_TRIM_THRESHOLD_" in os.environ and "MALLOC_MMAP_THRESHOLD_" in os.environ
