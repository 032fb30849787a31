"""How fast kernels are: nn.LSTM's time over each cell's, and the loop's over the kernel's.

    python benchmarks/kernels.py                        # all cells that have a kernel
    python benchmarks/kernels.py --cells lstm,nru --shapes 120,10,10,128

A training step (forward and backward), in one thread, counted in processor time, which other
programs on the machine disturb least. All that is compared is measured in turns, and the best of
many counts. The allocator is as it is, unless MALLOC_TRIM_THRESHOLD_ and the like are set.
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

import attractor.cells.layer.recurrent as layer
from attractor.cells import CELLS, Recurrent
from attractor.cells.kernels import STATUS
from attractor.cells.kernels.table import KERNELS

SHAPES = "784,100,1,100 120,10,10,128 35,20,256,256 100,1,10,64"


def train(module: nn.Module, x: Tensor) -> None:
    module(x)[0].sum().backward()


def best(works: dict[str, Callable[[], None]], seconds: float) -> dict[str, float]:
    """The least processor time of each, measured in turns."""
    least = dict.fromkeys(works, float("inf"))
    end, turns = time.thread_time() + seconds, 0
    while turns < 3 or time.thread_time() < end:
        for name, work in works.items():
            start = time.thread_time()
            work()
            least[name] = min(least[name], time.thread_time() - start)
        turns += 1
    return least


def without_kernel(module: nn.Module, x: Tensor) -> None:
    kept = layer.fused
    layer.fused = lambda *_: None
    try:
        train(module, x)
    finally:
        layer.fused = kept


def matmul_peak() -> float:
    a = torch.randn(1024, 1024)
    return 2 * 1024**3 / best({"mm": lambda: torch.mm(a, a)}, 1.0)["mm"] / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", default=",".join(n for n in CELLS if CELLS[n] in KERNELS))
    parser.add_argument("--shapes", default=SHAPES, help="time,batch,inputs,units, with blanks")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each pair")
    parser.add_argument("--eager", action="store_true", help="also against the loop")
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(f"kernels {STATUS}; torch {torch.__version__}; matmul {matmul_peak():.0f} GFLOP/s")
    shapes = [tuple(map(int, shape.split(","))) for shape in given.shapes.split()]
    print("| cell |", " | ".join(map(str, shapes)), "|")
    print("|---" * (1 + len(shapes)) + "|")
    for name in given.cells.split(","):
        found = [f"{name:12}"]
        for steps, batch, inputs, units in shapes:
            # rotations need a power of two
            units = 2 ** round(units - 1).bit_length() if name in ("eurnn", "goru") else units
            x, torchs = torch.randn(steps, batch, inputs), nn.LSTM(inputs, units)
            ours = Recurrent(name, inputs, units)
            works = {
                "torch": lambda m=torchs, x=x: train(m, x),
                "ours": lambda m=ours, x=x: train(m, x),
            }
            if given.eager:
                works["loop"] = lambda m=ours, x=x: without_kernel(m, x)
            took = best(works, given.seconds)
            text = f"{took['torch'] / took['ours']:.2f}"
            found.append(text + (f" ({took['loop'] / took['ours']:.1f})" if given.eager else ""))
        print("|", " | ".join(found), "|", flush=True)


if __name__ == "__main__":
    main()
