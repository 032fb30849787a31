"""Paths through external memories that are read and written at random, by simulation."""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Generator, Tensor

from attractor.checks import one_of, whole

Memory = Literal["tardis", "umann", "urmann"]


@dataclass(frozen=True, slots=True)
class PathLengths:
    """Lengths ``(simulations, cells)`` of the paths that end in each cell of a memory.

    `expected` is T/k - 1.
    """

    lengths: Tensor
    expected: float

    @property
    def mean(self) -> float:
        """Over simulations and cells."""
        return float(self.lengths.double().mean())

    @property
    def error(self) -> float:
        """Standard error of the mean, from the simulations."""
        each = self.lengths.double().mean(-1)
        return float(each.std() / len(each) ** 0.5)


def path_lengths(
    memory: Literal["tardis", "umann"] = "tardis",
    *,
    steps: int = 200,
    cells: int = 50,
    simulations: int = 10_000,
    generator: Generator | None = None,
) -> PathLengths:
    r"""How long the paths through each cell are after so many steps.

    The first k steps fill the cells with paths of length 0. Then TARDIS writes into the cell that
    it reads, drawn uniformly; uMANN draws the two apart:

    .. math::
        \mathrm{len}(M_t[i]) = \mathrm{len}(M_{t-1}[j_t]) + 1 \text{ where } i \text{ is written}

    For both the expectation is :math:`T/k - 1`: each step adds one to the sum, on average.

    Args:
        memory: which.
        steps: T.
        cells: k.
        simulations: all at once.
        generator: draws the reads; ``None`` means a fixed seed.

    Example:
        >>> found = path_lengths("umann", simulations=2000)
        >>> abs(found.mean - found.expected) < 0.1
        True

    References:
        Chandar (2020), thesis, section 3.5, equation 3.34 and figure 3.3.
    """
    one_of("memory", memory, ("tardis", "umann"))
    whole("cells", cells, 1)
    draw = _drawer(generator, whole("simulations", simulations, 1))
    lengths = torch.zeros(simulations, cells, dtype=torch.long)
    rows = torch.arange(simulations)
    for _ in range(max(0, whole("steps", steps, 1) - cells)):
        read = draw(cells)
        written = read if memory == "tardis" else draw(cells)
        lengths[rows, written] = lengths[rows, read] + 1
    return PathLengths(lengths, steps / cells - 1)


@dataclass(frozen=True, slots=True)
class ShortestPaths:
    """Of each simulation, the length of the shortest path and its part outside wormholes."""

    lengths: Tensor
    outside: Tensor


def shortest_paths(
    memory: Memory = "tardis",
    *,
    cells: int,
    start: int = 5,
    end: int = 50,
    simulations: int = 10_000,
    generator: Generator | None = None,
) -> ShortestPaths:
    """The shortest paths from one time step to a later one, through chain and memory.

    Every step has an edge from the step before and one, the wormhole, from the step whose state
    it reads, unless that is the step before. TARDIS fills its cells, then writes where it reads;
    uMANN reads and writes anywhere, and a cell that is still empty leads nowhere; urMANN's writer
    goes through the cells one after the other. Other readers are uniform over what is written.
    Among paths of the same length the one with fewest steps outside wormholes counts.

    Args:
        memory: which.
        cells: k.
        start: the earlier time step, counted from 0.
        end: the later one.
        simulations: all at once.
        generator: draws the reads; ``None`` means a fixed seed.

    Example:
        >>> chain = shortest_paths("urmann", cells=1, simulations=3)  # it holds the step before
        >>> chain.lengths.tolist(), chain.outside.tolist()
        ([45, 45, 45], [45, 45, 45])

    References:
        Chandar (2020), thesis, section 3.5 and figure 3.5.
    """
    one_of("memory", memory, get_args(Memory))
    whole("cells", cells, 1)
    draw = _drawer(generator, whole("simulations", simulations, 1))
    rows = torch.arange(simulations)
    held = torch.full((simulations, cells), -1)  # the time step whose state a cell holds
    far = 10**6
    # a path costs 1000 for each edge, and 1 more for each edge that is no wormhole
    cost = torch.full((simulations, whole("end", end, start + 1) + 1), 1000 * far)
    for time in range(end + 1):
        used = min(time, cells) if memory != "umann" else cells
        reads = draw(used) if used else None
        if time == whole("start", start, 0):
            cost[:, time] = 0
        elif time > start:
            cost[:, time] = cost[:, time - 1] + 1001
            if reads is not None:
                source = held[rows, reads]
                skips = (source >= 0) & (source < time - 1)
                known = torch.where(skips, cost[rows, source.clamp_min(0)], 1000 * far)
                cost[:, time] = torch.minimum(cost[:, time], known + 1000)
        if memory == "urmann":
            written = torch.full((simulations,), time % cells)
        elif memory == "umann":
            written = draw(cells)
        else:
            written = torch.full((simulations,), time)
            if time >= cells:
                assert reads is not None
                written = reads
        held[rows, written] = time
    found = cost[:, end]
    return ShortestPaths(found // 1000, found % 1000)


def _drawer(generator: Generator | None, many: int) -> "Draw":
    return Draw(generator or torch.Generator().manual_seed(0), many)


@dataclass(frozen=True, slots=True)
class Draw:
    """Draws whole numbers below a bound, one for each simulation."""

    generator: Generator
    many: int

    def __call__(self, below: int) -> Tensor:
        return torch.randint(below, (self.many,), generator=self.generator)


def urmann_hit(t0: int, t1: int, k: int) -> float:
    r"""How likely one of the last k/2 reads of urMANN hits the k/2 steps from :math:`t_0` on.

    .. math::
        1 - \prod_{m=0}^{k/2-1} \Big(1 - \frac{k/2}{t_1 - m}\Big)

    which the thesis writes as :math:`1 - (1 - p)^{k/2}` with p of the order of :math:`k / t_1`.
    With wormholes on, the path is at most k + 1 long.

    Example:
        >>> round(urmann_hit(5, 50, 10), 3)
        0.423

    References:
        Chandar (2020), thesis, section 3.5.
    """
    half = whole("k", k, 2) // 2
    missed = 1.0
    for m in range(half):
        targets = min(half, t1 - m - t0)
        missed *= 1 - max(0, targets) / (t1 - m)
    return 1 - missed
