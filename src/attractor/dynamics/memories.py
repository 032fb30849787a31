"""External memory as a graph, and how much of a Jacobian goes through it."""

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.func import jacrev

from attractor.cells import TARDISCell
from attractor.cells.base import map_steps
from attractor.errors import InputError


@dataclass(frozen=True, slots=True)
class MemoryJacobian:
    r"""The Jacobian :math:`\partial h_{t_1} / \partial h_{t_0} = Q + R` of a network with memory.

    Q has the reads detached: it goes through the controller alone. R is the rest.
    """

    q: Tensor
    r: Tensor

    @property
    def total(self) -> Tensor:
        """Q + R."""
        return self.q + self.r

    @property
    def norms(self) -> tuple[float, float, float]:
        """Largest singular values of Q, of R and of their sum."""
        found = [float(torch.linalg.matrix_norm(part, 2)) for part in (self.q, self.r, self.total)]
        return found[0], found[1], found[2]


def memory_jacobian(cell: TARDISCell, x: Tensor, t0: int, t1: int) -> MemoryJacobian:
    r"""Q and R of a real TARDIS on one sequence.

    The state :math:`h_{t_0}` is moved after its step, and with it what it wrote into the memory;
    reads are fixed choices, as in evaluation.

    Args:
        cell: it is copied to double precision, and put into evaluation mode there.
        x: one sequence ``(time, features)``.
        t0: the earlier step, counted from 0.
        t1: the later one.

    Example:
        >>> cell = TARDISCell(2, 4, cells=3, generator=torch.Generator().manual_seed(0))
        >>> found = memory_jacobian(cell, torch.randn(10, 2), 1, 6)
        >>> q, r, both = found.norms
        >>> abs(q - r) - 1e-9 <= both <= q + r + 1e-9  # (3.31)
        True

    Departs from the paper: (3.22) and (3.25) lack the factor of :math:`t_1` and are for a plain
    controller; TARDIS has an LSTM, so Q is the Jacobian without the reads, and R what is left.

    References:
        Chandar (2020), thesis, equations 3.20 to 3.32.
    """
    if not 0 <= t0 < t1 < len(x):
        raise InputError(
            f"expected 0 <= t0 < t1 < {len(x)}, the steps of the sequence, but got {t0} and {t1}."
        )
    cell = copy.deepcopy(cell).double().eval().requires_grad_(False)
    prepared = cell.prepare(x.detach().double()[:, None])
    state = cell.initial_state(1)
    filled = 0.0
    for time in range(t0 + 1):
        filled = float(state.filled[0])
        _, state = cell.step(map_steps(_at(time), prepared), state)
    place = int(filled) if filled < cell.cells else int(state.read[0].argmax())
    start = state

    def later(delta: Tensor, detached: bool) -> Tensor:
        written = torch.zeros(cell.cells, 1, dtype=delta.dtype).index_fill(
            0, torch.tensor([place]), 1.0
        )
        content = start.content + written * (cell.content_hh @ delta)
        now: Any = start._replace(h=start.h + delta, content=content)
        for time in range(t0 + 1, t1 + 1):
            if detached:
                now = now._replace(content=now.content.detach())
            _, now = cell.step(map_steps(_at(time), prepared), now)
        h: Tensor = now.h[0]
        return h

    zero = torch.zeros(cell.hidden_size, dtype=torch.float64)
    total = jacrev(later)(zero, False)
    q = jacrev(later)(zero, True)
    return MemoryJacobian(q, total - q)


def _at(time: int) -> Any:
    return lambda part: part[time]


@dataclass(frozen=True, slots=True)
class ReadGraph:
    """Which step reads what which step wrote: sources ``(time,)``, -1 for an empty cell.

    `lengths` are the shortest paths from each step back to the first; `degrees` the edges at each
    step, of the chain and of the wormholes.
    """

    sources: Tensor
    lengths: Tensor
    degrees: Tensor


@torch.no_grad()
def read_graph(cell: TARDISCell, x: Tensor) -> ReadGraph:
    """The wormholes that a TARDIS makes on one sequence ``(time, features)``.

    Example:
        >>> cell = TARDISCell(2, 4, cells=3, generator=torch.Generator().manual_seed(0))
        >>> graph = read_graph(cell, torch.randn(12, 2))
        >>> int(graph.degrees.max()) <= 4 and bool((graph.lengths <= torch.arange(12)).all())
        True

    References:
        Chandar (2020), thesis, section 3.2.4: at most two edges in and two out.
    """
    cell = copy.deepcopy(cell).eval()
    prepared = cell.prepare(x.detach().to(cell.weight_ih)[:, None])
    state = cell.initial_state(1)
    held = [-1] * cell.cells
    sources: list[int] = []
    for time in range(len(x)):
        filled = int(state.filled[0])
        _, state = cell.step(map_steps(_at(time), prepared), state)
        read = int(state.read[0].argmax())
        sources.append(held[read])
        held[filled if filled < cell.cells else read] = time
    lengths, degrees = [0] * len(x), [0] * len(x)
    for time in range(1, len(x)):
        edges = {time - 1, sources[time]} - {-1}
        lengths[time] = 1 + min(lengths[source] for source in edges)
        for source in edges:
            degrees[source] += 1
            degrees[time] += 1
    return ReadGraph(torch.tensor(sources), torch.tensor(lengths), torch.tensor(degrees))
