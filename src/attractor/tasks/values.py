"""Tasks whose answers are no classes: numbers, or labels of which several may hold."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import Dataset

from attractor.errors import InputError
from attractor.measures import ACCURACY, LOSS, Measure
from attractor.tasks.answers import priced
from attractor.tasks.arrays import ArrayTask, Data
from attractor.tasks.batch import Batch
from attractor.tasks.datasets import DatasetTask
from attractor.tasks.stored import StoredTask

PIECE = 1000
"""Held-out samples that are read at once."""


class _Vectors(StoredTask):
    """What all have in common: a vector as each answer."""

    asks_classes = False
    answers = "once"

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        said, penalty = priced(model, batch)
        each = self._each(said, batch.y).mean(1)
        loss = each.mean() if batch.weight is None else each @ batch.weight.to(each.dtype)
        return loss if penalty is None else loss + penalty

    @abstractmethod
    def _each(self, said: Tensor, y: Tensor) -> Tensor:
        """The loss of each number of each answer."""


class _Numbers(_Vectors):
    """Regression: the mean squared error, and the share of the variance that is explained."""

    measures: ClassVar[Mapping[str, Measure]] = {
        "loss": LOSS._replace(unit=""),
        "r2": Measure("max", "share"),
    }
    score = "r2"

    def _each(self, said: Tensor, y: Tensor) -> Tensor:
        return (said - y) ** 2

    @cached_property
    def _variance(self) -> float:
        y = torch.cat([batch.y for batch in self.held_out("test", PIECE)])
        return float(y.var(0, correction=0).mean())

    def measure(self, model: nn.Module, batch: Batch) -> dict[str, tuple[float, int]]:
        errors = self._each(priced(model, batch)[0], batch.y).mean(1)
        return {"loss": (errors.sum().item(), len(batch))}

    def told(self, means: dict[str, float]) -> dict[str, float]:
        return means | {"r2": 1 - means["loss"] / max(self._variance, 1e-12)}


class _Labels(_Vectors):
    """Labels: binary cross entropy, and the share of labels and of samples that are right."""

    measures: ClassVar[Mapping[str, Measure]] = {
        "loss": Measure("min", "nats per label", log=True),
        "accuracy": ACCURACY,
        "exact": ACCURACY,
    }

    def _each(self, said: Tensor, y: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(said, y.to(said), reduction="none")

    def measure(self, model: nn.Module, batch: Batch) -> dict[str, tuple[float, int]]:
        said = priced(model, batch)[0]
        right = (said > 0) == (batch.y > 0)
        return {
            "loss": (self._each(said, batch.y).mean(1).sum().item(), len(batch)),
            "accuracy": (float(right.sum()), right.numel()),
            "exact": (float(right.all(1).sum()), len(batch)),
        }


@dataclass(frozen=True, eq=False)
class _OfArrays(ArrayTask):
    """Arrays whose answers are vectors."""

    def _checked(self, data: Data, half: str) -> Data:
        y = data.y.float()
        if len(data.x) != len(y) or len(y) == 0 or y.ndim != 2 or y.shape[1] != len(self.classes):
            raise InputError(
                f"expected {half} answers of {len(self.classes)} numbers for each of the "
                f"{len(data.x)} samples of the task {self.name!r}, but got {tuple(data.y.shape)}. "
                "Try y.reshape(n, 1) for one number each, and classes=range(y.shape[1])."
            )
        if not bool(torch.isfinite(y).all()):
            raise InputError(
                f"expected finite {half} answers of the task {self.name!r}, but some are not. "
                "Leave out samples without an answer."
            )
        return data._replace(y=y)


class _OfSets(DatasetTask):
    """Data sets whose answers are vectors, or one number each."""

    def __init__(self, train: Dataset[Any], **options: Any) -> None:
        super().__init__(train, **options)
        self.answers = "once"
        self.output_size = self._first.y.shape[1]
        self.classes = tuple(range(self.output_size))

    def _placed(self, batch: Batch) -> Batch:
        batch.y = vectors(batch.y)
        return super()._placed(batch)


def vectors(y: Tensor) -> Tensor:
    """Answers as vectors of numbers; one number each is a vector of one.

    Shape:
        y ``(samples,)`` or ``(samples, d)``; ``(samples, d)``.

    Example:
        >>> vectors(torch.tensor([1, 2])).shape
        torch.Size([2, 1])
    """
    return y.float().reshape(len(y), -1)


class NumberTask(_Numbers, _OfArrays):
    r"""Say some numbers of each sample: regression, with the mean squared error as its loss.

    .. math::
        \ell_i = \frac1d \sum_{k=1}^d (s_{ik} - y_{ik})^2, \qquad
        R^2 = 1 - \frac{\sum_i \ell_i}{\sum_i \frac1d \sum_k (y_{ik} - \bar y_k)^2}

    A learner's matrix has the share of the variance that is explained, :math:`R^2`, where other
    tasks have their accuracy: 1 is perfect, and the mean of the test answers has 0.

    Args:
        train: as for `ArrayTask`, with answers of shape ``(samples, d)``; so are the others.
        test: likewise.
        classes: one for each of the d outputs, from 0.

    Shape:
        x ``(samples, ...)``, y ``(samples, d)``.

    Example:
        >>> data = Data(torch.eye(3), torch.tensor([[1.0], [2.0], [6.0]]))
        >>> task = NumberTask("sizes", 0, data, data, (0,))
        >>> batch = task.first("test", 3)
        >>> said = lambda x: torch.tensor([[1.0], [2.0], [3.0]])
        >>> float(task.loss(said, batch))  # 9 / 3
        3.0

    Departs from the paper: no paper.
    """


class LabelTask(_Labels, _OfArrays):
    r"""Say which labels hold of each sample, any number of them: binary cross entropy.

    .. math::
        \ell_i = -\frac1d \sum_{k=1}^d
            \left(y_{ik} \ln \sigma(s_{ik}) + (1 - y_{ik}) \ln(1 - \sigma(s_{ik}))\right)

    The accuracy is the share of the labels that are said rightly; ``exact`` is that of the samples
    with no label wrong.

    Args:
        train: as for `ArrayTask`, with answers 0 and 1 of shape ``(samples, d)``; so are the
            others.
        test: likewise.
        classes: the numbers of the d labels, from 0.

    Shape:
        x ``(samples, ...)``, y ``(samples, d)``.

    Example:
        >>> data = Data(torch.eye(2), torch.tensor([[1, 0, 1], [0, 1, 1]]))
        >>> task = LabelTask("tags", 0, data, data, (0, 1, 2))
        >>> said = lambda x: torch.tensor([[2.0, -1.0, 1.0], [-3.0, 1.0, -1.0]])
        >>> found = task.measure(said, task.first("test", 2))
        >>> found["accuracy"], found["exact"]
        ((5.0, 6), (1.0, 2))

    Departs from the paper: no paper.
    """

    def _checked(self, data: Data, half: str) -> Data:
        data = super()._checked(data, half)
        if not bool(((data.y == 0) | (data.y == 1)).all()):
            raise InputError(
                f"expected {half} answers 0 or 1 for each label of the task {self.name!r}, but got "
                "others. Say 1 where a label holds; for numbers try NumberTask."
            )
        return data


class NumberSetTask(_Numbers, _OfSets):
    """As `NumberTask`, over map-style data sets, which may be larger than memory.

    Args:
        train: the training samples, ``(x, y)`` each, where y is a number or a vector of them.
        options: as for `DatasetTask`, but for ``classes``.

    Example:
        >>> from torch.utils.data import TensorDataset
        >>> data = TensorDataset(torch.eye(3), torch.tensor([1.0, 2.0, 6.0]))
        >>> task = NumberSetTask(data, test=data)
        >>> task.samples(torch.tensor([0, 2])).y
        tensor([[1.],
                [6.]])

    Departs from the paper: no paper.
    """


class LabelSetTask(_Labels, _OfSets):
    """As `LabelTask`, over map-style data sets, which may be larger than memory.

    Args:
        train: the training samples, ``(x, y)`` each, where y is a vector of 0 and 1.
        options: as for `DatasetTask`, but for ``classes``.

    Example:
        >>> from torch.utils.data import TensorDataset
        >>> data = TensorDataset(torch.eye(2), torch.tensor([[1, 0, 1], [0, 1, 1]]))
        >>> LabelSetTask(data, test=data).classes
        (0, 1, 2)

    Departs from the paper: no paper.
    """
