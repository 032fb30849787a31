"""One update of a model by a team of processes, each with its share of the batch."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten

from attractor.errors import InputError
from attractor.state import Nested
from attractor.tasks import Batch
from attractor.tasks.answers import asked
from attractor.tasks.batch import IGNORE
from attractor.team import alike, gathered, share, summed, team
from attractor.training.carried import Carried


def shared(batch: Batch) -> tuple[Batch, float]:
    """The samples that are this process's, and their share in the mean over all answers.

    Example:
        >>> batch = Batch(torch.zeros(4, 3), torch.zeros(4))
        >>> mine, part = shared(batch)
        >>> mine is batch, part
        (True, 1.0)
    """
    size = team().size
    if size == 1:
        return batch, 1.0
    if len(batch) < size:
        raise InputError(
            f"expected a batch of at least a sample for each of the {size} processes, but got "
            f"{len(batch)}. Try a larger batch_size, or a smaller --nproc-per-node."
        )
    if batch.weight is not None:
        raise InputError(
            "expected batches without weights of samples, which a team cannot share, but got some. "
            "Try one process."
        )
    mine = replace(batch[share(len(batch))], continues=batch.continues)
    return mine, _answers(mine) / _answers(batch)


def _answers(batch: Batch) -> int:
    return int(torch.count_nonzero(asked(batch) != IGNORE))


def add_up(model: nn.Module, loss: float) -> float:
    """Replace the gradients of a model by their sum over the team; the sum of the losses."""
    if team().size == 1:
        return loss
    if not alike(model.buffers()):
        raise InputError(
            "expected a model that keeps nothing of the samples that it sees, so that a team can "
            "share a batch, but it has running averages (batch normalisation, or a reward). Leave "
            "them out, or use one process."
        )
    total = torch.tensor([loss], dtype=torch.float64)
    summed([total])
    summed([p.grad for p in model.parameters() if p.grad is not None])
    return total.item()


def all_leaves(reader: nn.Module, count: int) -> Nested:
    """The tensors of a carried state, of all `count` samples of the team."""
    if not isinstance(reader, Carried):
        return None
    leaves = reader.leaves()
    if leaves is None or team().size == 1:
        return leaves
    return [
        leaf if row is None else gathered(leaf.movedim(row, 0), count).movedim(0, row).contiguous()
        for leaf, row in zip(leaves, _rows(reader.model), strict=True)
    ]


def own_leaves(reader: Carried, leaves: Nested) -> Nested:
    """What of `all_leaves` is this process's."""
    if leaves is None or team().size == 1:
        return leaves
    return [
        leaf if row is None else leaf.movedim(row, 0)[share(leaf.shape[row])].movedim(0, row)
        for leaf, row in zip(leaves, _rows(reader.model), strict=True)
    ]


def _rows(model: Any) -> list[int | None]:
    """Along which dimension the samples are, in each tensor of a state."""
    two, three = (tree_flatten(model.initial_state(count))[0] for count in (2, 3))
    return [_differs(a, b) for a, b in zip(two, three, strict=True)]


def _differs(a: Tensor, b: Tensor) -> int | None:
    return next((k for k, (i, j) in enumerate(zip(a.shape, b.shape, strict=True)) if i != j), None)
