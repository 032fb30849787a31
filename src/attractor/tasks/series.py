"""Time series of the UCR and UEA archives."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Generator, Tensor

from attractor.checks import flag, number
from attractor.errors import InputError
from attractor.tasks.arrays import ArrayTask, Data, unchanged
from attractor.tasks.data.series import Series, load_series


class TimeSeries(ArrayTask):
    """Name the class of a time series of one or several dimensions, of any length.

    Classes are numbered from 0 in the order of their names. Part of the training half is for
    validation, drawn once with a fixed seed, as evenly among the classes as it can be.

    Args:
        dataset: its name in the archive: ``ECG5000``, ``CBF``, ``JapaneseVowels``.
        validation: the share of the training half that is for validation; with 0 there is none.
        normalise: bring each dimension to mean 0 and deviation 1 over the training series.
        root: the data root; the files are ``ucr/ECG5000_TRAIN.tsv`` or ``.ts`` and so on, plain or
            compressed, also in ``UCRArchive_2018`` and in a folder of the data set's name.

    Shape:
        x ``(samples, time, dimensions)``, y ``(samples,)``; lengths ``(samples,)`` where series are
        not equally long.

    Example:
        >>> task = TimeSeries("JapaneseVowels")  # doctest: +SKIP
        >>> task.input_size, task.output_size  # doctest: +SKIP
        (12, 9)

    Departs from the paper: part of the training half is kept for validation.

    References:
        Dau et al. (2019), The UCR time series archive, arXiv:1810.07758.
    """

    reference = "dau2019ucr"

    def __init__(
        self,
        dataset: str = "ECG5000",
        *,
        validation: float = 0.2,
        normalise: bool = False,
        root: str | Path | None = None,
    ) -> None:
        seen, test, classes = load_classes(dataset, root)
        train, valid = held_back(seen, number("validation", validation, 0, 0.9))
        super().__init__(
            dataset,
            0,
            train,
            test,
            tuple(range(classes)),
            read=Scaled.of(train) if flag("normalise", normalise) else unchanged,
            valid=valid,
        )


@dataclass(frozen=True)
class Scaled:
    """Series on the scale of the training series: steps beyond the end of one do not count.

    Args:
        mean: of each dimension.
        std: the deviation of each.

    Example:
        >>> scaled = Scaled.of(Data(torch.tensor([[[1.0], [3.0]]]), torch.tensor([0])))
        >>> scaled(torch.tensor([[[5.0]]])).item()
        3.0
    """

    mean: Tensor
    std: Tensor

    @classmethod
    def of(cls, train: Data) -> "Scaled":
        """The scale of these series; a dimension that never changes keeps its own."""
        mean, std = mean_and_deviation(_before_ends(train))
        return cls(mean.to(train.x.dtype), std.to(train.x.dtype))

    def __call__(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.std


def mean_and_deviation(values: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of each column and its deviation, in doubles; 1 where it never changes.

    Whether it changes is told beside the size of its values, so that no scale is too small or too
    large.

    Shape:
        values ``(n, columns)``; both results ``(columns,)``.

    Example:
        >>> mean_and_deviation(torch.tensor([[1e-30, 5.0], [3e-30, 5.0]]))[1]
        tensor([1.0000e-30, 1.0000e+00], dtype=torch.float64)
    """
    values = values.double()
    largest = values.abs().amax(0)
    size = largest.where(largest > 0, 1.0)
    shares = values / size
    std = shares.std(0, correction=0)
    changes = std > torch.finfo(torch.float64).eps
    return shares.mean(0) * size, (std * size).where(changes, 1.0)


def _before_ends(data: Data) -> Tensor:
    if data.lengths is None:
        return data.x.flatten(0, 1)
    return data.x[torch.arange(data.x.shape[1]) < data.lengths[:, None]]


def load_classes(name: str, root: str | Path | None) -> tuple[Data, Data, int]:
    """Both halves of a data set with their classes numbered, and how many there are."""
    train, test = load_series(name, "train", root), load_series(name, "test", root)
    labels = {label: place for place, label in enumerate(sorted(set(train.y)))}
    if len(labels) < 2:
        raise InputError(
            f"expected series of at least two classes in the training half of {name}, but all are "
            f"of the class {train.y[0]}. There is nothing to tell apart."
        )
    if train.x.shape[2] != test.x.shape[2]:
        raise InputError(
            f"expected series of {train.x.shape[2]} dimensions in the test half of {name}, but "
            f"got {test.x.shape[2]}. Get both halves from one version of the archive."
        )
    for label in test.y:
        if label not in labels:
            raise InputError(
                f"expected the classes {', '.join(labels)} in the test half of {name}, but got "
                f"{label}. Get both halves from one version of the archive."
            )
    return _data(train, labels), _data(test, labels), len(labels)


def held_back(
    data: Data, share: float, groups: Tensor | None = None, *, generator: Generator | None = None
) -> tuple[Data, Data | None]:
    """The data without, and with alone, a share of every class, in a random order.

    Args:
        data: all of it.
        share: how much is held back, from 0 to less than 1.
        groups: what to hold back a share of each of, whole numbers from 0, if not of the classes.
        generator: draws the order; ``None`` means a fixed one.
    """
    back = held_rows(data.y if groups is None else groups, share, generator=generator)
    if not back:
        return data, None
    kept = sorted({*range(len(data.y))} - {*back})
    return rows_of(data, kept), rows_of(data, back)


def held_rows(groups: Tensor, share: float, *, generator: Generator | None = None) -> list[int]:
    """The places of a share of every group, in a random choice; see `held_back`."""
    if share == 0:
        return []
    fixed = torch.Generator().manual_seed(0)
    order = torch.randperm(len(groups), generator=fixed if generator is None else generator)
    back: list[int] = []
    for one in range(int(groups.max()) + 1):
        rows = order[groups[order] == one].tolist()
        back += rows[: min(round(share * len(rows)), len(rows) - 1)]
    if not back:
        raise InputError(
            f"expected enough series to keep a share of {share:g} for validation, but there are "
            f"{len(groups)}. Try validation=0."
        )
    return sorted(back)


def rows_of(data: Data, rows: Sequence[int]) -> Data:
    """Some of the samples, by their places."""
    chosen = torch.tensor(rows)
    lengths = None if data.lengths is None else data.lengths[chosen]
    return Data(data.x[chosen], data.y[chosen], lengths)


def _data(series: Series, labels: dict[str, int]) -> Data:
    lengths = None if series.lengths is None else torch.from_numpy(series.lengths)
    y = torch.tensor([labels[label] for label in series.y])
    return Data(torch.from_numpy(series.x), y, lengths)
