"""A stream seen through features of patches, which are computed once and kept."""

from collections.abc import Callable
from dataclasses import replace

from attractor.experiments.kinds.features import folder_of, frozen, stream_of
from attractor.experiments.kinds.parts import Spec, seeded
from attractor.runs.checkpoint import read_state, write_state
from attractor.runs.drive import Context
from attractor.tasks.arrays import unchanged
from attractor.tasks.streams import Stream, patch_features


def kept_patches(
    stream: Spec,
    source: Callable[[], Stream],
    context: Context,
    *,
    filters: int,
    size: int = 6,
    threshold: float = 0.25,
    seed: int = 0,
) -> Stream:
    """The tasks of a stream as features, from ``out/features``, or computed and written there.

    Two processes that come at once compute the same and write the same.

    Args:
        stream: what the stream is.
        source: the stream of images; not asked if the features are there.
        context: the folder that holds all runs.
        filters: how many patches, drawn from the images of the first task alone.
        size: pixels of a patch's edge.
        threshold: below which likeness counts as none.
        seed: of the patches, whatever the seed of a run.
    """
    made = {"patches": filters, "size": size, "threshold": threshold, "seed": seed}
    path = context.out / "features" / folder_of(made, stream) / "features.safetensors"
    saved = read_state(path)
    if saved is None:
        images = source()
        # patches are of bytes, before they are normalised
        raw = replace(images, tasks=[replace(one, read=unchanged) for one in images.arrays()])
        extractor = patch_features(
            raw.arrays()[0].train.x,
            filters,
            size=size,
            threshold=threshold,
            generator=seeded(seed, "patches"),
        )
        saved = frozen(raw, extractor)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_state(path, saved)
    return stream_of(saved)
