"""What a frozen network sees of a stream: pretrained on its first classes, computed once, kept."""

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from pydantic import Field
from torch import Tensor
from torch.optim import SGD

from attractor.errors import InputError, RunError
from attractor.experiments.config import Frozen, slug
from attractor.experiments.kinds.parts import Spec, seeded
from attractor.models import make_model
from attractor.runs.checkpoint import read_state, write_state
from attractor.runs.data import checksum
from attractor.runs.drive import Context, drive
from attractor.state import Nested
from attractor.tasks import ArrayTask, Data
from attractor.tasks.streams import Stream, with_features
from attractor.tasks.streams.incremental import Shifted
from attractor.training import Diverged, Plan, Supervised

logger = logging.getLogger(__name__)


class Features(Frozen):
    """The frozen network through which a stream is seen, and how it is pretrained."""

    model: Spec
    steps: int = Field(ge=1)
    batch_size: int = Field(default=32, ge=1)
    lr: float = Field(default=0.05, gt=0)
    """At the first update; it falls to zero in a straight line."""
    momentum: float = Field(default=0.9, ge=0)
    weight_decay: float = Field(default=5e-4, ge=0)
    augment: bool = True
    """Shift and mirror the images."""
    seed: int = Field(default=0, ge=0)


class Source(NamedTuple):
    """The two parts of a stream: what to pretrain on, and the tasks; each is read when asked."""

    first: Callable[[], Stream]
    rest: Callable[[], Stream]


def kept_features(
    settings: Features, stream: Spec, source: Source, context: Context, *, device: torch.device
) -> Stream:
    """The tasks of a stream as features, from ``out/features``, or pretrained and written there.

    A process that comes while another makes them waits. Killed at any moment, the pretraining goes
    on from its last checkpoint. A damaged file is noticed by its checksum, and made again.

    Args:
        settings: the network and its pretraining.
        stream: what the stream is.
        source: where the images come from; not asked if the features are there.
        context: the folder that holds all runs, and whether to stop.
        device: where to pretrain.
    """
    name = key(settings, stream)
    folder = context.out / "features" / name
    path = folder / "features.safetensors"
    if read_state(path) is None:
        path.unlink(missing_ok=True)

        def make() -> Supervised:
            process = pretraining(settings, source.first().arrays()[0], device)
            # not for -v alone: nothing else is seen until the first run starts
            logger.warning("pretraining a network for features; progress is in %s", folder)
            return process

        def write(process: Supervised) -> dict[str, Any]:
            write_state(path, frozen(source.rest(), _extractor(process, device)))
            return {"accuracy": process.measure("test")["accuracy"]}

        try:
            drive(
                make,
                folder,
                key=name,
                outcome=write,
                context=context,
                data=lambda process: checksum(process.task),
                threads=torch.get_num_threads(),
                makes=path,
                wait=True,
            )
        except Diverged as error:
            raise RunError(
                f"the features' network: {error.reason}. Try a smaller features.lr."
            ) from error
    return stream_of(read_state(path))


def key(settings: Features, stream: Spec) -> str:
    """The name of a folder, and a hash of all that decides what is in it."""
    return folder_of(settings.model_dump(), stream)


def folder_of(made: Spec, stream: Spec) -> str:
    """The name of a folder for features that are made in some way of a stream."""
    content = {**stream, "features": made}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return f"{slug(str(stream.get('dataset', stream['name'])))}-{digest[:10]}"


def pretraining(settings: Features, task: ArrayTask, device: torch.device) -> Supervised:
    """The training of the network, at a rate that falls to zero in a straight line."""
    if settings.augment:
        task = replace(task, noise=Shifted())
    model = make_model(
        settings.model,
        task.features,
        task.output_size,
        generator=seeded(settings.seed, "weights"),
    ).to(device)
    if not hasattr(model, "features"):
        raise InputError(
            f"expected a network that gives features, but got {settings.model.get('name')!r}. "
            "Try features.model.name=resnet."
        )
    sgd = SGD(
        model.parameters(),
        lr=settings.lr,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
    )
    return Supervised(
        model,
        task,
        sgd,
        Plan(settings.steps, settings.batch_size, log_every=1, eval_every=None, schedule="linear"),
        generator=seeded(settings.seed, "batches"),
    )


def _extractor(process: Supervised, device: torch.device) -> Callable[[Tensor], Tensor]:
    network: Any = process.model.eval()

    def extractor(x: Tensor) -> Tensor:
        seen: Tensor = network.features(x.to(device))
        return seen.cpu()

    return extractor


def frozen(stream: Stream, extractor: Callable[[Tensor], Tensor]) -> Nested:
    """The tasks of a stream as something sees them, to be written; `stream_of` reads it."""
    tasks = [
        {
            "name": one.name,
            "classes": list(one.classes),
            "train": [one.train.x, one.train.y],
            "test": [one.test.x, one.test.y],
        }
        for one in with_features(stream, extractor).arrays()
    ]
    return {"name": stream.name, "tasks": tasks}


def stream_of(saved: Nested) -> Stream:
    """The stream that `frozen` took down."""
    tasks = [
        ArrayTask(
            one["name"], place, Data(*one["train"]), Data(*one["test"]), tuple(one["classes"])
        )
        for place, one in enumerate(saved["tasks"])
    ]
    return Stream(f"{saved['name']}, features", tasks)
