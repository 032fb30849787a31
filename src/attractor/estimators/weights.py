"""Classes whose mistakes count more, or less, than those of others."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from attractor.checks import number
from attractor.errors import InputError, shortened
from attractor.tasks import Batch
from attractor.tasks.answers import answer
from attractor.tasks.datasets import DatasetTask


class WeightedClasses(DatasetTask):
    r"""Name the class of each sample, where mistakes on some classes count more.

    .. math::
        \frac1n \sum_{i=1}^n w_{y_i} \ell_i

    with the cross entropy :math:`\ell_i`, in training and on the samples that are held out. The
    accuracy is as ever.

    Args:
        weights: w, one for each class.
        train: the training samples.
        valid: the validation samples; by default there are none.

    Example:
        >>> data = TensorDataset(torch.eye(2), torch.tensor([0, 1]))
        >>> task = WeightedClasses(torch.tensor([3.0, 1.0]), data)
        >>> round(float(task.loss(torch.zeros_like, task.samples(torch.arange(2)))), 3)  # 2 ln 2
        1.386

    Departs from the paper: no paper.
    """

    def __init__(
        self, weights: Tensor, train: TensorDataset, valid: TensorDataset | None = None
    ) -> None:
        super().__init__(train, valid=valid)
        self.weights = weights

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        weight = self.weights.to(batch.y.device)[batch.y]
        return super().loss(model, replace(batch, weight=weight / len(batch)))

    def measure(self, model: nn.Module, batch: Batch) -> dict[str, tuple[float, int]]:
        said = answer(model, batch)
        each = F.cross_entropy(said, batch.y, reduction="none")
        right = torch.count_nonzero(said.argmax(1) == batch.y)
        loss = each @ self.weights.to(each)[batch.y]
        return {"loss": (loss.item(), len(batch)), "accuracy": (float(right), len(batch))}


def weights_of(
    given: Any, classes: NDArray[Any], places: NDArray[np.intp]
) -> NDArray[np.float64] | None:
    """How much a mistake on each class counts; ``None`` where all count the same.

    Args:
        given: ``None``, ``"balanced"`` or the weight of each class by its name, 1 where it says
            none. Balanced, each class counts as much as any other in sum.
        classes: their names, in order.
        places: the class of each series, by its place among them.

    Example:
        >>> weights_of("balanced", np.array(["a", "b"]), np.array([0, 0, 0, 1])).tolist()
        [0.6666666666666666, 2.0]
        >>> weights_of({"b": 5}, np.array(["a", "b"]), np.array([0, 1])).tolist()
        [1.0, 5.0]
    """
    if given is None:
        return None
    if isinstance(given, str) and given == "balanced":
        return len(places) / (len(classes) * np.bincount(places))
    names = classes.tolist()
    if not isinstance(given, Mapping):
        raise InputError(
            "expected class_weight to be 'balanced', None or a dictionary from classes to their "
            f"weights, but got {shortened(given)}. Try class_weight={{{names[0]!r}: 2.0}}."
        )
    for name in given:
        if name not in names:
            raise InputError(
                f"expected class_weight for the classes {shortened(names)}, but got {name!r} among "
                "them. Leave it out, or give series of this class."
            )
    found = [number(f"class_weight[{name!r}]", given.get(name, 1.0), 0) for name in names]
    if not any(found):
        raise InputError(
            "expected a class_weight above zero for at least one class, but all are zero. Try "
            "class_weight='balanced'."
        )
    return np.array(found)
