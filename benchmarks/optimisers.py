"""Milliseconds of one step of every learned optimiser, beside Adam's.

Run it with ``python benchmarks/optimisers.py [repeats]``. One thread; the rules take turns, so
that whatever else the machine does falls on all of them; each figure is the best of the repeats, in
time of the processor. The gradients are there: only ``step`` is timed. Last comes a step of `lstm`
with its way back, as meta-training takes it, by its kernel and by PyTorch.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from attractor.models import MLP
from attractor.optimisers import OPTIMISERS, Learned, LSTMOptimiser, fused, sizes
from attractor.optimisers.view import count

SIZES = ([784, 32, 10], [784, 1258, 10])
CONTEXT = torch.randn(128, 784)


def steps(units: list[int]) -> dict[str, Callable[[], object]]:
    """What takes one step, for each optimiser with a network of its own."""
    made: dict[str, Callable[[], object]] = {}
    adam = torch.optim.Adam(network(units).parameters(), lr=1e-6)
    made["Adam"] = adam.step
    made["Adam, fused"] = torch.optim.Adam(network(units).parameters(), lr=1e-6, fused=True).step
    for key, entry in OPTIMISERS.items():
        model = network(units)
        optimiser = entry(**sizes(entry, model))(model.parameters())
        if not isinstance(optimiser, Learned):
            continue
        optimiser.param_groups[0]["lr"] = 1e-6
        made[key] = partial(optimiser.step, context=CONTEXT)
    return made


def there_and_back(count: int) -> dict[str, Callable[[], object]]:
    """A step of two layers of LSTM on so many coordinates, and all gradients of it."""
    rule = LSTMOptimiser()
    layers: Any = tuple((c.weight_ih, c.weight_hh, c.bias) for c in rule.stack.cells)
    assert rule.head is not None
    weights = fused.Weights(layers, (rule.head.weight, rule.head.bias))
    grads = torch.randn(1, count)
    ways: dict[str, Callable[[], object]] = {}
    for name in ("kernel", "PyTorch"):
        states = [torch.randn(1, 20, count).mT.requires_grad_() for _ in range(4)]
        if name == "PyTorch":
            states = [s.detach().contiguous().requires_grad_() for s in states]
        slopes = [torch.randn(1, count), *map(torch.randn_like, states)]
        read = [*states, *rule.parameters()]

        def way(
            name: str = name, states: Any = states, slopes: Any = slopes, read: Any = read
        ) -> None:
            if name == "kernel":
                found = fused.step(weights, grads, states, 10.0)
                assert found is not None
                made = [found[0], *found[1]]
            else:
                made = fused.plain(10.0, grads, states, weights.flat())
            torch.autograd.grad(made, read, slopes)

        ways[name] = way
    return ways


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
            print(f"| {name} | {milliseconds:.2f} | {milliseconds / found['Adam']:.1f} |")
    found = best(there_and_back(25_450), repeats)
    times = found["PyTorch"] / found["kernel"]
    print(f"\nthere and back, 25,450 coordinates: {found}, {times:.1f} times")


if __name__ == "__main__":
    main()
