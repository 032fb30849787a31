"""Whether the memory of the machine is enough for a pass there and back."""

import os

import torch
from torch import Tensor, nn

from attractor.bench.cells import Case, works

SHARE = 0.5
"""Of the memory that is there, what a case may take."""
FEW = 4
"""Steps after which it is clear what one of them keeps."""


def has_room(case: Case) -> bool:
    """Whether what the case keeps for its way back fits into half of the machine's memory."""
    return case.way == "forward" or kept_bytes(case) < SHARE * memory()


def kept_bytes(case: Case) -> float:
    """What autograd keeps of the plain loop (the layer, if it has none): steps are alike, and so
    a few of them tell."""
    few = case._replace(shape=case.shape._replace(steps=min(FEW, case.shape.steps)))
    done = works(few)
    kept = Kept()
    with kept:
        done.get("eager", done["layer"])()
    return kept.bytes * case.shape.steps / few.shape.steps


class Kept(torch.autograd.graph.saved_tensors_hooks):
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
    """The machine's memory in bytes; on a system that does not tell, as much as is enough."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 1 << 62
