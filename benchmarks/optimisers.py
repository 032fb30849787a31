"""Milliseconds of one step of every learned optimiser, beside Adam's.

Run it with ``python benchmarks/optimisers.py [repeats]``. One thread; the rules take turns, so
that whatever else the machine does falls on all of them; each figure is the best of the repeats, in
time of the processor. The gradients are there: only ``step`` is timed.
"""

import sys
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import nn

from attractor.models import MLP
from attractor.optimisers import OPTIMISERS, Learned, sizes
from attractor.optimisers.view import count

SIZES = ([784, 32, 10], [784, 1258, 10])
CONTEXT = torch.randn(128, 784)


def steps(units: list[int]) -> dict[str, Callable[[], object]]:
    """What takes one step, for each optimiser with a network of its own."""
    made: dict[str, Callable[[], object]] = {}
    adam = torch.optim.Adam(network(units).parameters(), lr=1e-6)
    made["Adam"] = adam.step
    for key, entry in OPTIMISERS.items():
        model = network(units)
        optimiser = entry(**sizes(entry, model))(model.parameters())
        if not isinstance(optimiser, Learned):
            continue
        optimiser.param_groups[0]["lr"] = 1e-6
        made[key] = partial(optimiser.step, context=CONTEXT)
    return made


def network(units: list[int]) -> nn.Module:
    """A network with gradients."""
    model = MLP(units)
    for parameter in model.parameters():
        parameter.grad = 0.01 * torch.randn_like(parameter)
    return model


def best(made: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Milliseconds of each, the best of several; the first step of each does not count."""
    found = dict.fromkeys(made, float("inf"))
    for repeat in range(repeats + 1):
        for name, step in made.items():
            start = time.process_time()
            step()
            if repeat:
                found[name] = min(found[name], 1e3 * (time.process_time() - start))
    return found


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(f"torch {torch.__version__}, one thread, best of {repeats}")
    for units in SIZES:
        total = count(network(units).parameters())
        print(f"\n{total:,} parameters ({'-'.join(map(str, units))})\n")
        print("| optimiser | ms | x Adam |\n|---|---:|---:|")
        found = best(steps(units), repeats if total < 100_000 else max(repeats // 4, 1))
        for name, milliseconds in found.items():
            print(f"| {name} | {milliseconds:.2f} | {milliseconds / found['Adam']:.0f} |")


if __name__ == "__main__":
    main()
