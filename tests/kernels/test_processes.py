"""Kernels in processes of their own: forced paths, memory that runs out, watched accesses."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import attractor.cells.kernels as kernels
from attractor.cells.kernels import STATUS
from attractor.cells.kernels.native import NAMES, library
from attractor.optimisers import Pacer, sweep

pytestmark = pytest.mark.skipif(STATUS.path is None, reason=f"kernels are {STATUS}")
COMPILER = shutil.which("clang++-14") or shutil.which("g++")

LAYER = """
import torch
from attractor.cells import Recurrent
from attractor.cells.kernels import STATUS
layer = Recurrent("lstm", 3, 21, generator=torch.Generator().manual_seed(0))
x = torch.linspace(-1, 1, 5 * 4 * 3).view(5, 4, 3)
print(STATUS.path, STATUS)
print(layer(x)[0].double().square().sum().item())
"""


def run(script: str, kernels: str = "") -> list[str]:
    """What a script prints, line by line."""
    asked = os.environ | {"ATTRACTOR_KERNELS": kernels}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=asked, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def ask(path: str) -> tuple[str, float]:
    status, number = run(LAYER, path)
    return status, float(number)


def runs_here(path: str) -> bool:
    """Whether the library accepts a path; the one in use stays."""
    accepted = library().attractor_choose(path.encode()) is not None
    library().attractor_choose((STATUS.path or "").encode())
    return accepted


def test_each_path_can_be_forced_and_gives_the_same() -> None:
    status, expected = ask("off")
    assert status == "None off (ATTRACTOR_KERNELS=off)"
    for path in filter(runs_here, NAMES):
        status, found = ask(path)
        assert status.startswith(f"{path} active ({NAMES[path]}, ")
        assert abs(found - expected) < 1e-6
    status, found = ask("altivec")
    assert status == "None off (ATTRACTOR_KERNELS=altivec is no path on this machine)"
    assert abs(found - expected) < 1e-6


LITTLE = """
import ctypes
import resource
import torch
from attractor.cells import Recurrent
from attractor.optimisers.sweep import Sweep, Swept, _run

def leave(room):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + room, resource.RLIM_INFINITY))

layer, x, long = Recurrent("lstm", 3, 60), torch.randn(40, 60, 3), torch.randn(2000, 64, 3)
number = torch.ones(1)
one = dict.fromkeys(("param", "grad", "rates"), number.data_ptr())
one |= {"state": (number.data_ptr(),) * 4, "shared": (number.data_ptr(),) * 3}
tensors = (Swept * 200_000)(*[Swept(size=1, sign=1.0, **one)] * 200_000)
with torch.no_grad():
    torch.set_num_threads(1)
    expected = layer(x)[0]
    torch.set_num_threads(2)
    leave(5 << 20)  # less than the stack of a thread
    found = layer(x)[0]
    torch.set_num_threads(1)  # torch's own threads cannot be had either, which ends the process
    print(torch.equal(found, expected))
    try:
        layer(long)
    except MemoryError as error:
        print(error)
print(_run()(b"pacer", ctypes.byref(Sweep(4, 2, len(tensors), tensors))), number.item())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_that_has_run_out_is_an_error_and_no_crash() -> None:
    same, error, code = run(LITTLE)
    assert same == "True"
    assert error == "no memory left for 30720000 bytes"
    assert code == "-2 1.0"


def test_a_rule_that_finds_no_memory_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "_run", lambda: lambda rule, call: -2)
    parameter = torch.nn.Parameter(torch.ones(3))
    parameter.grad = torch.ones(3)
    optimiser = Pacer.pretrained()([parameter])
    with pytest.raises(MemoryError, match="no memory left for the kernel of pacer"):
        optimiser.step()
    assert parameter.tolist() == [1, 1, 1]


@pytest.mark.slow
@pytest.mark.timeout(1800)  # compiling watched code takes minutes
@pytest.mark.skipif(COMPILER is None, reason="needs a compiler with its sanitizers")
@pytest.mark.parametrize("path", ["plain", "avx2"])
def test_no_access_goes_astray(path: str, tmp_path: Path) -> None:
    if not runs_here(path):
        pytest.skip(f"{path} does not run here")
    source = Path(kernels.__file__).parent / "native"
    flags = "-std=gnu++17 -O1 -g1 -pthread -fsanitize=address,undefined -fno-sanitize-recover=all"
    files = [str(Path(__file__).with_name("sanitise.cpp")), f"{source}/memory.cpp"]
    program = str(tmp_path / "sanitise")
    defined = ["-DATTRACTOR_EXACT", f"-DATTRACTOR_PATH={path}", f"-I{source}"]
    defined += ["-mavx2", "-mfma"] if path == "avx2" else []
    command = [str(COMPILER), *flags.split(), *defined, *files, f"{source}/threads.cpp"]
    subprocess.run([*command, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "2640 runs\n"
