"""What a learner answers to which class: beyond the share that is right."""

import torch
from torch import Tensor, nn

from attractor.checks import whole
from attractor.continual.weighting import evaluating
from attractor.errors import InputError
from attractor.tasks import IGNORE, Split
from attractor.tasks.answers import answer, asked
from attractor.tasks.streams import Stream

PIECE = 1000
"""Samples that are asked at once."""


@torch.no_grad()
def confusion(model: nn.Module, stream: Stream, *, split: Split = "test") -> Tensor:
    """How often each class is answered with each: of all samples, or steps, of a stream.

    Args:
        model: as a learner left it.
        stream: the tasks.
        split: of the samples.

    Shape:
        ``(outputs, outputs)`` of the model, whole numbers; a row for each right answer.

    Example:
        >>> from attractor.tasks import ArrayTask, Data
        >>> data = Data(torch.eye(3)[[0, 1, 1]], torch.tensor([0, 1, 2]))
        >>> confusion(nn.Identity(), Stream("one", [ArrayTask("a", 0, data, data, (0, 1, 2))]))
        tensor([[1, 0, 0],
                [0, 1, 0],
                [0, 1, 0]])
    """
    said, right = _answers(model, stream, split)
    size = said.shape[-1]
    pairs = right * size + said.argmax(-1)
    return torch.bincount(pairs, minlength=size * size).view(size, size)


def per_class(confused: Tensor) -> Tensor:
    """The share of each class that is right; NaN of one that does not occur.

    Example:
        >>> per_class(torch.tensor([[3, 1], [0, 2]]))
        tensor([0.7500, 1.0000])
    """
    return confused.diagonal() / confused.sum(1)


@torch.no_grad()
def top_k(model: nn.Module, stream: Stream, k: int, *, split: Split = "test") -> float:
    """The share of samples whose class is among the k that the model finds most likely.

    Args:
        model: as a learner left it.
        stream: the tasks.
        k: how many.
        split: of the samples.

    Example:
        >>> from attractor.tasks import ArrayTask, Data
        >>> data = Data(torch.tensor([[3.0, 2.0, 1.0]] * 2), torch.tensor([1, 2]))
        >>> top_k(nn.Identity(), Stream("one", [ArrayTask("a", 0, data, data, (1, 2))]), 2)
        0.5
    """
    said, right = _answers(model, stream, split)
    if whole("k", k, 1) > said.shape[-1]:
        raise InputError(
            f"expected k of at most the {said.shape[-1]} outputs of the model, but got {k}. "
            f"Try {min(5, said.shape[-1])}."
        )
    among = said.topk(k, dim=-1).indices == right[:, None]
    return float(among.any(1).double().mean())


def _answers(model: nn.Module, stream: Stream, split: Split) -> tuple[Tensor, Tensor]:
    """What is said to everything that is asked, and what is right."""
    if not stream[0].asks_classes:
        raise InputError(
            f"expected a stream that asks for classes, but {stream.name!r} asks for numbers, "
            "labels or bits. Try the measures of its tasks."
        )
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    said, right = [], []
    with evaluating(model):
        for task in stream:
            for batch in task.held_out(split, PIECE):
                y = asked(batch).flatten()
                output = answer(model, batch.to(device)).flatten(0, -2).cpu()
                said.append(output[y != IGNORE])
                right.append(y[y != IGNORE])
    return torch.cat(said), torch.cat(right)
