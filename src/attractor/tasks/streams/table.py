"""The table of streams: the only place where a stream is registered."""

from collections.abc import Callable

from attractor.tasks.streams.base import Stream
from attractor.tasks.streams.images import (
    image_sets,
    permuted_images,
    permuted_sequences,
    rotated_images,
    split_images,
)
from attractor.tasks.streams.incremental import incremental_images
from attractor.tasks.streams.language import language
from attractor.tasks.streams.series import series_sets, split_series

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
