"""What kernels are held to beside the ratios of `attractor bench`, as rows of a table.

    python benchmarks/kernel_bars.py                 # all
    python benchmarks/kernel_bars.py peak threads    # some: peak, threads, memory, build

``peak`` is the arithmetic of an LSTM's training step at (35, 20, 650, 650) per second over that of
a large matrix product, by processor time; ``threads`` what a second thread gains at (40, 100, 1,
100), the processor's time of one over the clock's of two, which means nothing where others use the
machine; ``memory`` the peak of a training step over 10,000 steps above what was there before, each
in a process of its own; ``build`` the time and size of the library with all paths.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from attractor.bench.timing import best_of, threads
from attractor.cells import Recurrent

ROOT = Path(__file__).parents[1]
SECONDS = 20.0


def train(module: nn.Module, x: torch.Tensor) -> Callable[[], None]:
    return lambda: module(x)[0].sum().backward()


def peak() -> list[tuple[str, str]]:
    steps, batch, size = 35, 20, 650
    x, a = torch.randn(steps, batch, size), torch.randn(1024, 1024)
    works = {
        "ours": train(Recurrent("lstm", size, size), x),
        "nn.LSTM": train(nn.LSTM(size, size), x),
        "product": lambda: torch.mm(a, a),
    }
    with threads(1):
        took = best_of(works, SECONDS)
    done = 3 * 2 * steps * batch * 4 * size * 2 * size  # there, and twice that back
    top = 2 * 1024**3 / took["product"]
    return [
        (f"{name}, of the matmul peak ({top / 1e9:.0f} GFLOP/s)", f"{done / took[name] / top:.0%}")
        for name in ("ours", "nn.LSTM")
    ]


def second_thread() -> list[tuple[str, str]]:
    # short runs, of which one or another has both cores to itself
    work = train(Recurrent("lstm", 1, 100), torch.randn(40, 100, 1))
    alone = together = float("inf")
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        with threads(1):
            start = time.process_time()
            work()
            alone = min(alone, time.process_time() - start)
        with threads(2):
            start = time.perf_counter()
            work()
            together = min(together, time.perf_counter() - start)
    load = os.getloadavg()[0]
    return [(f"two threads at batch 100 (load {load:.0f})", f"{alone / together:.2f} times one")]


KINDS: dict[str, Callable[[], nn.Module]] = {
    "nn.LSTM": lambda: nn.LSTM(10, 64),
    "ours": lambda: Recurrent("lstm", 10, 64),
    "ours, checkpoint_every=100": lambda: Recurrent("lstm", 10, 64, checkpoint_every=100),
}


def memory() -> list[tuple[str, str]]:
    found = []
    for kind in KINDS:
        command = [sys.executable, __file__, "--one", kind]
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
        found.append((f"{kind}, memory at 10,000 steps", f"{done.stdout.strip()} MB"))
    return found


def one(kind: str) -> None:
    torch.set_num_threads(1)
    module, x = KINDS[kind](), torch.randn(10_000, 10, 10)
    train(module, x[:20])()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    train(module, x)()
    print(round((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024))


def build() -> list[tuple[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(
            ROOT / "src/attractor/cells/kernels", f"{folder}/src/attractor/cells/kernels"
        )
        shutil.copy(ROOT / "hatch_build.py", folder)
        start = time.perf_counter()
        script = [sys.executable, "hatch_build.py"]
        made = subprocess.run(  # noqa: S603
            script, cwd=folder, capture_output=True, text=True, check=True
        )
        took, spent = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        size = (Path(folder) / made.stdout.strip()).stat().st_size
    cpu = spent.ru_utime + spent.ru_stime
    return [
        ("build of all paths", f"{took:.0f} s, {cpu:.0f} s of the processor"),
        ("library", f"{size / 1e6:.1f} MB"),
    ]


BARS = {"peak": peak, "threads": second_thread, "memory": memory, "build": build}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2])
    else:
        for name in sys.argv[1:] or BARS:
            for what, value in BARS[name]():
                print(f"| {what} | {value} |", flush=True)
