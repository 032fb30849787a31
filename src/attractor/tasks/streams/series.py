"""Streams of time series."""

from collections.abc import Sequence
from pathlib import Path

import torch

from attractor.tasks.arrays import ArrayTask, Data
from attractor.tasks.series import load_classes
from attractor.tasks.streams.classes import in_groups, split_classes
from attractor.tasks.streams.stream import Stream, cites


@cites("dau2019ucr")
def series_sets(
    *, datasets: Sequence[str] = ("CBF", "ECG200", "ArrowHead"), root: str | Path | None = None
) -> Stream:
    """One data set of the UCR archive after the other, with outputs in common.

    Classes are numbered from 0 in each data set, in the order of their names. Series may be of
    any length, but must have the same number of dimensions.

    Args:
        datasets: names in the archive.
        root: the data root; ``None`` means ``ATTRACTOR_DATA``, else the user's cache folder.

    Shape:
        x ``(samples, time, dimensions)``, for a model with ``batch_first=True``; y
        ``(samples,)``; lengths ``(samples,)``.

    Example:
        >>> stream = series_sets(datasets=["CBF", "Coffee"])  # doctest: +SKIP

    References:
        Dau et al. (2019), The UCR time series archive, arXiv:1810.07758.
    """
    tasks = []
    for place, name in enumerate(datasets):
        train, test, classes = load_classes(name, root)
        answers = tuple(range(classes))
        tasks.append(ArrayTask(name, place, _with_lengths(train), _with_lengths(test), answers))
    return Stream(", ".join(datasets), tasks)


@cites("dau2019ucr")
def split_series(
    *,
    dataset: str = "JapaneseVowels",
    size: int = 3,
    relabel: bool = False,
    root: str | Path | None = None,
) -> Stream:
    """A data set of the UCR archive, each task with some new classes.

    Args:
        dataset: its name in the archive.
        size: classes of a task.
        relabel: as for `split_classes`.
        root: as for `series_sets`.

    Shape:
        as for `series_sets`; lengths only where the data set is ragged.

    Example:
        >>> stream = split_series(dataset="JapaneseVowels")  # doctest: +SKIP

    References:
        Dau et al. (2019), The UCR time series archive, arXiv:1810.07758.
    """
    train, test, classes = load_classes(dataset, root)
    groups = in_groups(range(classes), size)
    return split_classes(train, test, groups, relabel=relabel, name=f"split {dataset}")


def _with_lengths(data: Data) -> Data:
    samples, time = data.x.shape[:2]
    return data if data.lengths is not None else data._replace(lengths=torch.full((samples,), time))
