"""The table of streams: the only place where a stream is registered."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from attractor.checks import whole
from attractor.errors import InputError, shortened
from attractor.tasks.streams.classes import in_groups
from attractor.tasks.streams.images import (
    image_sets,
    permuted_images,
    permuted_sequences,
    rotated_images,
    split_images,
)
from attractor.tasks.streams.incremental import class_groups, incremental_images
from attractor.tasks.streams.language import language
from attractor.tasks.streams.series import series_sets, split_series
from attractor.tasks.streams.stream import Stream

STREAMS: dict[str, Callable[..., Stream]] = {
    "image_sets": image_sets,
    "incremental_images": incremental_images,
    "language": language,
    "permuted_images": permuted_images,
    "permuted_sequences": permuted_sequences,
    "rotated_images": rotated_images,
    "series_sets": series_sets,
    "split_images": split_images,
    "split_series": split_series,
}


def task_count(name: str, options: Mapping[str, Any]) -> int | None:
    """How many tasks a stream has, without its data; ``None`` where only they can tell.

    Args:
        name: a key of `STREAMS`; of another stream nothing is known.
        options: those that are not the stream's defaults; those that it does not take are ignored.

    Example:
        >>> task_count("split_images", {"size": 5}), task_count("permuted_images", {"tasks": 3})
        (2, 3)
    """
    if name not in STREAMS:
        return None
    known = inspect.signature(STREAMS[name]).parameters
    given = {key: options.get(key, known[key].default) for key in known}
    match name:
        case "permuted_images" | "permuted_sequences":
            return whole("tasks", given["tasks"], 1)
        case "split_images":
            return len(in_groups(range(10), given["size"]))
        case "incremental_images":
            return len(class_groups(*(given[key] for key in ("dataset", "part", "first", "size"))))
        case "split_series":
            return None
    (listed,) = known.keys() & {"datasets", "degrees", "domains"}
    if not isinstance(given[listed], list | tuple):
        raise InputError(
            f"expected stream.{listed} to be a list, but got {shortened(given[listed])}. "
            f"Try stream.{listed}={list(known[listed].default)}."
        )
    return len(given[listed])
