"""External memories that are read at random, and the graphs that a TARDIS makes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Generator

from attractor.cells import TARDISCell
from attractor.dynamics import path_lengths, read_graph, shortest_paths
from attractor.reproduction.computed.found import Found

SEEDS = range(10)


def degrees(data: Path | None = None) -> Iterator[Found]:
    """The largest degree of a step, over 20 untrained TARDIS of 2 to 11 cells (001, 3.2.4).

    Once all cells are written, what is read is written over, so a state is read once at most.
    """
    most = full = 0
    for seed in range(20):
        g = Generator().manual_seed(seed)
        cell = TARDISCell(3, 8, cells=2 + seed % 10, generator=g)
        graph = read_graph(cell, torch.randn(100, 3, generator=g))
        most = max(most, int(graph.degrees.max()))
        full = max(full, int(graph.degrees[cell.cells :].max()))
    yield Found("TARDIS", "largest degree of a vertex of its graph", most)
    yield Found("TARDIS, memory full", "largest degree of a vertex of its graph", full)


def late_reads(data: Path | None = None, last: int = 1000, many: int = 20_000) -> Iterator[Found]:
    """How often a uniform read at step t1 is at or after a uniform t0 before it (001, 3.5)."""
    for seed in SEEDS:
        g = Generator().manual_seed(seed)
        t0, read = torch.randint(last, (2, many), generator=g)
        share = float((read >= t0).double().mean())
        yield Found(
            "urMANN, t0 uniform", "probability that the read at t1 is at or after t0", share, seed
        )


def paths(data: Path | None = None) -> Iterator[Found]:
    """Mean lengths of the paths through cells, 100 simulations a seed (001, figure 3.3)."""
    rows: list[tuple[Any, str]] = [("tardis", "TARDIS"), ("umann", "uMANN")]
    for memory, name in rows:
        for seed in SEEDS:
            g = Generator().manual_seed(seed)
            mean = path_lengths(memory, simulations=100, generator=g).mean
            yield Found(f"{name}, T = 200, k = 50", "expected path length T/k - 1", mean, seed)


def shortest(data: Path | None = None) -> Iterator[Found]:
    """Shortest paths from step 5 to 50 by memory size, 200 simulations a seed (001, figure 3.5)."""
    memories: list[tuple[Any, str]] = [
        ("tardis", "TARDIS"),
        ("umann", "uMANN"),
        ("urmann", "urMANN"),
    ]
    for memory, name in memories:
        for cells in (5, 40):
            for seed in SEEDS:
                g = Generator().manual_seed(seed)
                found = shortest_paths(memory, cells=cells, simulations=200, generator=g)
                row = f"{name}, {cells} cells"
                yield Found(row, "shortest path", float(found.lengths.double().mean()), seed)
                yield Found(row, "outside wormholes", float(found.outside.double().mean()), seed)
