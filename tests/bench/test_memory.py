"""Programs of ours ask the allocator to keep memory, and an import never does."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from attractor.runs.memory import allocator

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc alone is asked")

MAPPED = """
import ctypes, pathlib
def mapped():
    '''Bytes that a large piece takes straight from the system.'''
    class Info(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in "a b c d hblkhd f g h i j".split()]
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype, libc.malloc.restype = Info, ctypes.c_void_p
    before = libc.mallinfo2().hblkhd
    libc.malloc(ctypes.c_size_t(100 << 20))
    return libc.mallinfo2().hblkhd - before
"""


def said(code: str, tmp_path: Path) -> str:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, "-c", MAPPED + code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=kept,
        check=True,
    )
    return done.stdout.splitlines()[-1]


def test_an_import_leaves_the_allocator_alone(tmp_path: Path) -> None:
    code = "import attractor, attractor.cli, attractor.runs.jobs\nprint(mapped() >= 100 << 20)"
    assert said(code, tmp_path) == "True"


def test_run_keeps_memory(tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv = ['attractor', 'run', 'demo', '--dry-run']\n"
        "from attractor.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "from attractor.runs.memory import allocator\n"
        "print(mapped(), allocator())"
    )
    mapped, _, name = said(code, tmp_path).partition(" ")
    assert mapped == "0"
    assert name.startswith("glibc")
    assert name.endswith("memory kept")


def test_workers_keep_memory(tmp_path: Path) -> None:
    code = (
        "from attractor.runs.jobs import do_all\n"
        "def do(config, *, stop): pathlib.Path(config).write_text(str(mapped()))\n"
        "do_all(['a', 'b'], do, name=str, jobs=2)\n"
        "print(mapped() > 0, *(pathlib.Path(one).read_text() for one in 'ab'))"
    )
    assert said(code, tmp_path) == "True 0 0"


def test_another_allocator_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/libjemalloc.so.2")
    assert allocator() == "jemalloc"
