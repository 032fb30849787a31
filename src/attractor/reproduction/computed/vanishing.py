"""Products of Jacobians: recurrent networks that forget, and a memory that shortens the way."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor
from torch.func import jacrev

from attractor.cells import CELLS, RNNCell
from attractor.dynamics import long_term_jacobian
from attractor.reproduction.computed.found import Found

SEEDS, STEPS, UNITS = range(10), 50, 16


def scaled(norm: float, seed: int) -> RNNCell:
    """A plain network whose recurrent matrix is `norm` times an orthogonal one."""
    cell = RNNCell(
        2,
        UNITS,
        recurrent_init="orthogonal",
        generator=Generator().manual_seed(seed),
    )
    with torch.no_grad():
        cell.weight_hh.mul_(norm)
    return cell


def products() -> Iterator[Found]:
    """Jacobians over 50 random inputs by the norm of the recurrent matrix (001, section 2.3).

    The bound is the norm to the power of the steps, for the slope of tanh is at most 1.
    """
    for seed in SEEDS:
        x = torch.randn(STEPS, 2, generator=Generator().manual_seed(100 + seed))
        for norm in (0.9, 1.2):
            found = long_term_jacobian(scaled(norm, seed), x)
            size = float(found.singular_values[-1, 0])
            yield Found(f"norm {norm:g}", "log10 of the Jacobian's norm", math.log10(size), seed)
            yield Found(f"norm {norm:g}", "norm over its bound", size / norm**STEPS, seed)


def latches() -> Iterator[Found]:
    """One tanh unit that is to keep a bit through 200 steps of noise (001, 417-437).

    The Jacobian is the slope at the state, mean over the steps and 1,000 units.
    """
    for seed in SEEDS:
        noise = 0.3 * torch.randn(200, 1000, generator=Generator().manual_seed(seed)).double()
        for w in (1.0, 2.0):
            h = torch.ones(1000, dtype=torch.float64)
            slopes = []
            for now in noise:
                h = torch.tanh(w * h + now)
                slopes.append(w * (1 - h.square()))
            row = f"weight {w:g}"
            yield Found(
                row, "share of units that keep their bit", float((h > 0).double().mean()), seed
            )
            yield Found(row, "mean slope", float(torch.stack(slopes).mean()), seed)


def flows(data: Path | None = None) -> Iterator[Found]:
    """What section 2.3 of 001 says of gradients and of memory."""
    yield from products()
    yield from latches()


class Memory(NamedTuple):
    """A plain network that reads one old state at each step: (3.20) and (3.21)."""

    W: Tensor
    V: Tensor
    A: Tensor

    def run(self, h: Tensor, x: Tensor, reads: list[int | None]) -> list[Tensor]:
        """The states after each step; ``reads`` has the place of the state that is read."""
        states = [h]
        for now, place in zip(x, reads, strict=True):
            z = self.W @ states[-1] + now
            if place is not None:
                z = z + self.V @ (self.A @ states[place])
            states.append(torch.tanh(z))
        return states


def networks(seed: int) -> tuple[Memory, Tensor, Tensor]:
    """A memory whose recurrent matrix shrinks what it carries, a state and 100 inputs."""
    g = Generator().manual_seed(seed)
    drawn = torch.randn(3, UNITS, UNITS, generator=g, dtype=torch.float64)
    W, V, A = (torch.linalg.qr(one).Q for one in drawn)
    x = 0.5 * torch.randn(100, UNITS, generator=g, dtype=torch.float64)
    return Memory(0.8 * W, V, A), torch.zeros(UNITS, dtype=torch.float64), x


def split(memory: Memory, h: Tensor, x: Tensor, reads: list[int | None], *, whole: bool) -> Tensor:
    """Q + R of equation 3.22 by hand: with the factor of t1, or as printed without it."""
    states = memory.run(h, x, reads)
    D = [torch.diag(1 - state.square()) for state in states]
    last, identity = len(x), torch.eye(UNITS, dtype=h.dtype)
    to: list[Tensor] = [identity]
    for t in range(1, last + 1):
        place = reads[t - 1]
        step = D[t] @ memory.W @ to[-1]
        to.append(step if place is None else step + D[t] @ memory.V @ memory.A @ to[place])

    def carried(first: int, end: int) -> Tensor:
        product = identity
        for t in range(first, end):
            product = D[t] @ memory.W @ product
        return product

    total = carried(1, last + 1)
    for k in range(1, last + 1):
        place = reads[k - 1]
        if place is not None:
            end = last + 1 if whole or k == last else last
            total = total + carried(k + 1, end) @ D[k] @ memory.V @ memory.A @ to[place]
    return total


def sums(data: Path | None = None) -> Iterator[Found]:
    """The Jacobian of a memory network beside Q + R by hand (001, section 3.4)."""
    for seed in SEEDS:
        memory, h, x = networks(seed)
        g = Generator().manual_seed(seed)
        reads: list[int | None] = [int(torch.randint(t + 1, (), generator=g)) for t in range(8)]

        def end(
            start: Tensor, memory: Memory = memory, x: Tensor = x, reads: Any = reads
        ) -> Tensor:
            return memory.run(start, x[:8], reads)[-1]

        exact = jacrev(end)(h)
        alone = split(memory, h, x[:8], [None] * 8, whole=True)
        both, q, r = (
            float(torch.linalg.matrix_norm(one, 2)) for one in (exact, alone, exact - alone)
        )
        yield Found("Q + R", "its norm over | |Q| - |R| |", both / abs(q - r), seed)
        for row, whole in (("Q + R with the factor of t1", True), ("Q + R as printed", False)):
            error = float((split(memory, h, x[:8], reads, whole=whole) - exact).abs().max())
            yield Found(row, "log10 of the largest error", math.log10(error + 1e-18), seed)


def reads(data: Path | None = None) -> Iterator[Found]:
    """Jacobians of a memory network whose last step reads the first state (001, theorem 1)."""
    for seed in SEEDS:
        memory, h, x = networks(seed)
        for gap in (10, 100):
            for row, first in (("perfect read", 0), ("no read", None)):
                places: list[int | None] = [*[None] * (gap - 1), first]

                def end(
                    start: Tensor, memory: Memory = memory, x: Tensor = x[:gap], at: Any = places
                ) -> Tensor:
                    return memory.run(start, x, at)[-1]

                norm = float(torch.linalg.matrix_norm(jacrev(end)(h), 2))
                yield Found(f"{row}, {gap} steps", "log10 of the norm", math.log10(norm), seed)


def memories(data: Path | None = None) -> Iterator[Found]:
    """How much gradient comes back through 100 steps of untrained cells (001, section 4.2.1).

    The norm of the Jacobian of the memory by itself: m of an NRU, c of an LSTM; 64 units, normal
    inputs. An LSTM's forget bias is 1.
    """
    options: dict[str, dict[str, Any]] = {"nru": {"memory_size": 64, "heads": 4}, "lstm": {}}
    for seed in SEEDS:
        x = torch.randn(100, 4, generator=Generator().manual_seed(100 + seed)).double()
        for name, row in (("nru", "NRU, m"), ("lstm", "LSTM, c")):
            kind: Any = CELLS[name]
            cell = kind(4, 64, generator=Generator().manual_seed(seed), **options[name])
            cell.double().requires_grad_(requires_grad=False)

            def end(kept: Tensor, cell: Any = cell, x: Tensor = x) -> Tensor:
                h, first = cell.initial_state(1)
                state = type(cell.initial_state(1))(h, first + kept)
                for now in cell.prepare(x[:, None]):
                    _, state = cell.step(now, state)
                return torch.as_tensor(state[1][0])

            norm = float(torch.linalg.matrix_norm(jacrev(end)(torch.zeros(64).double()), 2))
            yield Found(row, "log10 of the norm", math.log10(norm), seed)
