"""Deep stacks with shortcuts and without: gradients that reach the first layer, and attractors."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn
from torch.func import jacrev

from attractor.continual import train
from attractor.dynamics import gradient_by_depth, highway_ends
from attractor.models import HCN, MLP, ResMLP
from attractor.reproduction.computed.found import Found
from attractor.tasks.streams import permuted_images

SEEDS, LAYERS, UPDATES = range(10), 50, 150
STACKS: dict[str, Callable[..., nn.Module]] = {"plain": MLP, "residual": ResMLP, "highway": HCN}


def reached(data: Path | None = None) -> Iterator[Found]:
    """How much gradient reaches the first of 50 layers, beside the last (000, section 2.1.1)."""
    for seed in SEEDS:
        for row, kind in STACKS.items():
            g = Generator().manual_seed(seed)
            sizes = [20, *[32] * LAYERS, 10]
            model = kind(sizes, init="xavier", generator=g)
            x, y = torch.randn(64, 20, generator=g), torch.randint(10, (64,), generator=g)
            loss = partial(F.cross_entropy, target=y)
            found = gradient_by_depth(model.double(), x.double(), loss)
            norms = dict(zip(found.names, found.outputs.tolist(), strict=True))
            first, *_, last, _ = [norm for name, norm in norms.items() if "gates" not in name]
            column = "log10 of the first layer's gradient over the last's"
            yield Found(row, column, math.log10(first / last), seed)


def gated(k: Tensor, W: Tensor, T: Tensor) -> Tensor:
    """A highway of the state k, with its gate T given."""
    return (1 - T) * k + T * torch.relu(W @ k)


def slopes(data: Path | None = None) -> Iterator[Found]:
    """How layers answer to their weights, by automatic differentiation (000, section 6.2.4)."""
    g = Generator().manual_seed(0)
    double = torch.float64
    k, T = torch.randn(8, generator=g, dtype=double), torch.rand(8, generator=g, dtype=double)
    W = torch.randn(8, 8, generator=g, dtype=double)
    plain = jacrev(lambda W: torch.relu(W @ k))(W)
    residual = jacrev(lambda W: k + torch.relu(W @ k))(W)
    highway = jacrev(lambda W: gated(k, W, T))(W)
    right = T[:, None, None] * plain
    yield Found("residual", "largest error", float((residual - plain).abs().max()))
    yield Found("highway", "largest error", float((highway - right).abs().max()))


def distinct(rows: Tensor) -> int:
    """How many rows are further apart than a hundredth of their size.

    Example:
        >>> distinct(torch.tensor([[1.0, 0.0], [1.0, 0.001], [0.0, 1.0]]))
        2
    """
    kept: list[Tensor] = []
    for row in rows:
        if all(float((row - one).norm()) > 0.01 * float(1 + one.norm()) for one in kept):
            kept.append(row)
    return len(kept)


def basins(data: Path | None = None) -> Iterator[Found]:
    """Where highways that learnt two permutations of digits take samples (000, figure 6.9).

    The gate of each sample is held, and its state passed through the highway 2,000 times.
    """
    for seed in SEEDS:
        stream = permuted_images(dataset="digits", tasks=2, generator=Generator().manual_seed(seed))
        new = HCN([64, 32, 32, 10], generator=Generator().manual_seed(seed))
        model: Any = train(new, stream, iterations=UPDATES, seed=seed).model
        ends = [
            highway_ends(model, next(task.held_out("test", 10)).x, steps=2000) for task in stream
        ]
        still = torch.cat(ends)
        still = still[~still.isnan().any(1)]
        yield Found("highway", "attractors that two tasks use", distinct(still), seed)
        yield Found("highway", "share of samples that come to rest", len(still) / 20, seed)
