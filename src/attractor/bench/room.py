"""What a pass costs in memory and time, told from a few of its steps."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from attractor.bench.timing import Work

SHARE = 0.5
"""Of the memory that is free, what a pass may take."""
LONGEST = 10.0
"""Seconds that a pass of the plain loop may take."""
FEW = 4
"""Steps after which it is clear what one of them costs: they are alike."""


class Cost(NamedTuple):
    """Of one step of a pass: the bytes that autograd keeps for the way back, and the seconds."""

    bytes: float
    seconds: float

    def has_room(self, steps: int) -> bool:
        """Whether what so many steps keep fits into half of the free memory."""
        return self.bytes * steps < SHARE * memory()

    def affordable(self, steps: int) -> int:
        """Of so many steps, as many as fit into half of the free memory and `LONGEST`, or a few.

        Example:
            >>> Cost(bytes=1.0, seconds=0.1).affordable(30)
            30
            >>> Cost(bytes=1.0, seconds=0.1).affordable(300)
            100
        """
        most = min(LONGEST / max(self.seconds, 1e-9), SHARE * memory() / max(self.bytes, 1e-9))
        return min(steps, max(FEW, round(most)))


def cost(passing: Callable[[int], Work], steps: int) -> Cost:
    """What a step of a pass costs.

    Args:
        passing: makes a pass of so many steps.
        steps: of the whole.
    """
    few = min(FEW, steps)
    work = passing(few)
    work()  # what the first pass alone does is not counted
    start = time.process_time()
    tape = Tape()
    with tape:
        work()
    return Cost(tape.bytes / few, (time.process_time() - start) / few)


class Tape(torch.autograd.graph.saved_tensors_hooks):
    """Counts the bytes of tensors that autograd keeps, each piece of memory once."""

    def __init__(self) -> None:
        self.pieces: dict[int, Tensor] = {}
        super().__init__(self._note, lambda tensor: tensor)

    def _note(self, tensor: Tensor) -> Tensor:
        if not isinstance(tensor, nn.Parameter):
            # held, so that no other piece gets its address
            self.pieces[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    @property
    def bytes(self) -> int:
        return sum(tensor.untyped_storage().nbytes() for tensor in self.pieces.values())


def memory() -> int:
    """The free memory of the machine in bytes; where that is not told, all, or what is enough."""
    try:
        told = Path("/proc/meminfo").read_text(encoding="ascii")
        return 1024 * int(told.partition("MemAvailable:")[2].split()[0])
    except (OSError, IndexError, ValueError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 1 << 62
