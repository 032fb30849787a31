"""What users have, as a task."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, TensorDataset

from attractor.errors import InputError
from attractor.tasks import IGNORE, Judged, Task
from attractor.tasks.datasets import numbers, over
from attractor.training.compatible import check_batch_size, samples_of
from attractor.training.finite import expect_finite
from attractor.training.supervised import Plan


def as_task(
    data: Any,
    valid: Any = None,
    loss: Callable[[Tensor, Tensor], Tensor] | None = None,
    *,
    batch_size: int | None = None,
) -> Task:
    """A task over a task, ``(x, y)``, a data set or a loader, judged by a loss.

    A list of samples ``(x, y)`` is a data set, whose sequences may be of several lengths.

    Args:
        data: what to train on.
        valid: validation data; a task has its own.
        loss: by default cross entropy for classes and the mean squared error for other numbers.
        batch_size: of data sets without numbers; a loader has its own.

    Example:
        >>> x = torch.randn(6, 4)
        >>> type(as_task((x, torch.zeros(6, 1)))).__name__
        'Judged'
        >>> type(as_task((x, [0, 1, 0, 1, 0, 1]))).__name__
        'DatasetTask'
    """
    if isinstance(data, Task):
        if valid is not None:
            raise InputError(
                "expected no valid beside a task, which has validation data of its own, but got "
                f"{type(valid).__name__}. Leave it out."
            )
        return data if loss is None else Judged(data, loss)
    if isinstance(data, DataLoader) and batch_size is not None:
        raise InputError(
            f"expected no batch_size beside a DataLoader, which has its own, but got {batch_size}. "
            f"Try DataLoader(data, batch_size={batch_size})."
        )
    task = over(
        _samples(data, "data"),
        valid=None if valid is None else _samples(valid, "valid"),
        batch_size=Plan.batch_size if batch_size is None else batch_size,
    )
    if loss is None and task.shown().y.is_floating_point():
        loss = F.mse_loss
    return task if loss is None else Judged(task, loss)


def batch_size_for(task: Task, asked: int | None) -> int:
    """Samples of a batch: as many as are asked for, else 32, or all where there are fewer.

    Args:
        task: what the batches are of.
        asked: refused where there are fewer samples.

    Example:
        >>> task = as_task((torch.randn(6, 4), [0, 1, 0, 1, 0, 1]))
        >>> batch_size_for(task, None), batch_size_for(task, 4)
        (6, 4)
    """
    if asked is None:
        there = samples_of(task)
        return Plan.batch_size if there is None else min(Plan.batch_size, there)
    check_batch_size(task, asked)
    return asked


def _samples(given: Any, what: str) -> Any:
    """Data as a data set or a loader, once they are known to be of a kind that is read."""
    listed = isinstance(given, list) and all(hasattr(one, "shape") for one in given)
    if isinstance(given, tuple) or (listed and given):
        return _tensors(tuple(given), what)
    if isinstance(given, TensorDataset):
        for place, tensor in enumerate(given.tensors):
            expect_finite(tensor, f"tensor {place} of {what}")
    if isinstance(given, Dataset | DataLoader):
        return given
    numbered = hasattr(given, "__len__") and hasattr(given, "__getitem__")
    if not numbered or isinstance(given, str | Mapping):
        raise InputError(
            f"expected {what} as (x, y), a Dataset or a DataLoader, but got "
            f"{type(given).__name__}. Try (x, y) of arrays with samples first."
        )
    return _padded(given, what) if isinstance(given, list) and _uneven(given) else given


def _uneven(samples: list[Any]) -> bool:
    """Whether samples are ``(x, y)`` each with inputs of several shapes."""
    pairs = all(isinstance(one, tuple | list) and len(one) == 2 for one in samples)
    shapes = {getattr(one[0], "shape", None) for one in samples} if pairs else set()
    return len(shapes) > 1 and () not in shapes and None not in shapes


def _padded(samples: list[Any], what: str) -> TensorDataset:
    """Sequences of several lengths as tensors, with the length of each."""
    shapes = sorted({tuple(x.shape) for x, _ in samples})
    if len({shape[1:] for shape in shapes}) > 1 or shapes[0][0] == 0:
        raise InputError(
            "expected sequences of at least one step with the same features each in "
            f"{what}, but got {' and '.join(map(str, shapes[:4]))}. Try inputs (time, features)."
        )
    inputs, answers = (
        [numbers(one[place], f"the {name} of {what}") for one in samples]
        for place, name in enumerate(("inputs", "answers"))
    )
    lengths = torch.tensor([len(x) for x in inputs])
    if [len(y) if y.ndim else 0 for y in answers] == lengths.tolist():
        y = pad_sequence(answers, True, 0 if answers[0].is_floating_point() else IGNORE)
    elif len({y.shape for y in answers}) == 1:
        y = torch.stack(answers)
    else:
        raise InputError(
            f"expected one answer for each sequence of {what}, or one for each of its steps, but "
            f"got {tuple(answers[0].shape)} for {lengths[0]} steps. Try as many as there are steps."
        )
    x = pad_sequence(inputs, batch_first=True)
    expect_finite(x, f"the inputs of {what}")
    expect_finite(y, f"the answers of {what}")
    return TensorDataset(*Arrays(x, y)[:], lengths)


def _tensors(pair: tuple[Any, ...], what: str) -> TensorDataset:
    if len(pair) != 2 or len(pair[0]) != len(pair[1]):
        raise InputError(
            f"expected {what} as (x, y) with an answer for each input, but got "
            f"{[len(one) for one in pair]}. Try (x, y) of arrays with samples first, or a Dataset."
        )
    names = f"the inputs of {what}", f"the answers of {what}"
    x, y = (numbers(one, name) for one, name in zip(pair, names, strict=True))
    for given, tensor, name in zip(pair, (x, y), names, strict=True):
        if not isinstance(given, np.memmap):  # which may be larger than memory
            expect_finite(tensor, name)
    return Arrays(x, y)


class Arrays(TensorDataset):
    """Arrays in the types that networks and losses take; what is read alone is converted.

    So an array on disk that is larger than memory stays there.

    Example:
        >>> data = Arrays(torch.ones(4, 2).double(), torch.arange(4).int())
        >>> [one.dtype for one in data[torch.tensor([0, 2])]]
        [torch.float32, torch.int64]
    """

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        x, y = (tensor[index] for tensor in self.tensors)
        if x.dtype == torch.float64:
            x = x.float()
        if y.dtype == torch.float64:
            y = y.float()
        return x, (y if y.is_floating_point() else y.long())
