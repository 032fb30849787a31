"""Whether the labels of a user's data are classes that a model has outputs for."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn
from torch.utils.data import TensorDataset

from attractor.errors import InputError
from attractor.tasks import IGNORE, Batch, Task
from attractor.tasks.answers import answer
from attractor.tasks.datasets import DatasetTask, LoaderTask


def check_labels(model: nn.Module, task: Task, some: Batch) -> None:
    """Refuse labels without an output: all those in memory, or those of the samples at hand.

    Args:
        model: in evaluation mode.
        task: over data of the user's; the labels of others are known to be right.
        some: training samples that were read already.

    Example:
        >>> import torch
        >>> data = TensorDataset(torch.randn(4, 2), torch.tensor([0, 1, 2, 3]))
        >>> task = DatasetTask(data)
        >>> check_labels(nn.Linear(2, 3), task, task.shown())
        Traceback (most recent call last):
        ...
        attractor.errors.InputError: expected labels from 0 to 2, one for each of the 3 outputs of \
the model, but got 3. Widen its last layer, or renumber the classes.
    """
    if not isinstance(task, DatasetTask | LoaderTask):
        return
    said = answer(model, some)
    _expect_labels(said, some.y)
    for where, data in (("", task.train), (" in valid", task.valid)):
        if isinstance(data, TensorDataset):
            labels = data.tensors[1]
            _expect_labels(said, labels, where)
            expect_asked(labels, where)
    if isinstance(task.train, TensorDataset):
        _expect_classes(task.train.tensors[1])


@contextmanager
def labels_told(model: nn.Module, task: Task, batch: Batch, where: str) -> Iterator[None]:
    """Tell labels without an output for what they are, once a loss failed over them.

    Data that are read bit by bit cannot be looked through before; this costs nothing until then.

    Args:
        model: what was asked.
        task: one that asks for classes; mistakes of others stay as they are.
        batch: what the loss is of.
        where: in words, with a blank before them.
    """
    try:
        yield
    except InputError:
        raise
    except (IndexError, RuntimeError, ValueError) as error:
        own = isinstance(task, DatasetTask | LoaderTask)
        if not own and (type(task).loss is not Task.loss or isinstance(error, RuntimeError)):
            raise  # it is not about labels either
        try:
            said = answer(model, batch)
        except (IndexError, RuntimeError, ValueError):
            raise error from None  # it is not about labels
        _expect_answers(said, batch.y, where)
        _expect_labels(said, batch.y, where)
        raise


def expect_asked(labels: Tensor, where: str) -> None:
    """Refuse labels none of which counts.

    Example:
        >>> import torch
        >>> expect_asked(torch.tensor([IGNORE, 1]), "")
    """
    if not labels.is_floating_point() and bool((labels == IGNORE).all()):
        raise InputError(
            f"expected labels that count, but all{where} are {IGNORE}, which says that nothing is "
            "asked. Number the classes from 0, or leave such samples out."
        )


def _expect_answers(said: Tensor, labels: Tensor, where: str) -> None:
    """Refuse a model that answers once where it is asked at each step, or the other way."""
    if said[..., 0].numel() != labels.numel():
        raise InputError(
            f"expected an answer to each of the labels of shape {tuple(labels.shape)}, but the "
            f"model gives answers of shape {tuple(said.shape)}{where}. Try SequenceTagger for an "
            "answer at each step, SequenceClassifier for one, or y.argmax(-1) for one-hot labels."
        )


def _expect_labels(said: Tensor, labels: Tensor, where: str = "") -> None:
    if labels.is_floating_point():
        raise InputError(
            f"expected whole numbers as labels, as those to train on are, but got "
            f"{labels.dtype}{where}. Try y.long()."
        )
    outputs = said.shape[-1]
    beyond = labels[(labels != IGNORE) & ((labels < 0) | (labels >= outputs))]
    if len(beyond):
        raise InputError(
            f"expected labels from 0 to {outputs - 1}, one for each of the {outputs} outputs of "
            f"the model, but got {int(beyond[0])}{where}. Widen its last layer, or renumber the "
            "classes."
        )


def _expect_classes(labels: Tensor) -> None:
    """Refuse arrays of one class, as estimators do; other data are not read for this."""
    asked = labels[labels != IGNORE]
    if bool((asked == asked[0]).all()):
        raise InputError(
            f"expected samples of at least two classes, but all are of the class {int(asked[0])}: "
            "with one class there is nothing to tell apart. Give samples of another."
        )
