"""What a frozen network sees of a stream: pretrained on its first classes, computed once, kept."""

import hashlib
import json
import logging
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import SGD

from attractor.continual import Learner
from attractor.continual.saving import join, split
from attractor.errors import InputError, RunError
from attractor.experiments.build import derived_seed
from attractor.experiments.checkpoint import Checkpoint, candidates, write
from attractor.experiments.config import slug
from attractor.experiments.continual_config import FeaturesConfig, StreamConfig
from attractor.experiments.folder import Log, locked, sweep
from attractor.experiments.networks import build_network
from attractor.experiments.work import StoppedError
from attractor.tasks.streams import Data, Experience, Stream, with_features
from attractor.tasks.streams.incremental import Shifted

logger = logging.getLogger(__name__)

SAVE_EVERY = 50
"""Updates of the network between checkpoints."""


class Source(NamedTuple):
    """The two parts of a stream: what to pretrain on, and the tasks; each is read when asked."""

    first: Callable[[], Stream]
    rest: Callable[[], Stream]


def kept_features(
    config: StreamConfig,
    source: Source,
    out: Path,
    *,
    device: torch.device,
    stop: Callable[[], bool] = lambda: False,
) -> Stream:
    """The tasks of a stream as features, from ``out/features``, or pretrained and written there.

    A process that comes while another makes them waits. Killed at any moment, the pretraining goes
    on from its last checkpoint. A damaged file is noticed by its checksum, and made again.

    Args:
        config: the stream and, under ``features``, the network and its pretraining.
        source: where the images come from; not asked if the features are there.
        out: the folder that holds all runs.
        device: where to pretrain.
        stop: asked after each update; if it says True, all is saved and `StoppedError` raised.
    """
    folder = out / "features" / key(config)
    with locked(folder, wait=True):
        sweep(folder)
        found = next(candidates(folder), None)
        if found is None or "tasks" not in found.values:
            assert config.features is not None
            # not for -v alone: nothing else is seen until the first run starts
            logger.warning("pretraining a network for features; progress is in %s", folder)
            learner = _learner(config.features, source.first(), device)
            if found is not None:
                learner.load_state_dict(join(found.tensors, found.values["learner"]))
            _pretrain(learner, config.features, folder, stop)
            found = _features(learner, source.rest(), device)
            write(folder, found)
    return _stream(found)


def key(config: StreamConfig) -> str:
    """The name of a folder, and a hash of all that decides what is in it."""
    assert config.features is not None
    content = {"name": config.name, **config.options, "features": config.features.model_dump()}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return f"{slug(str(config.options.get('dataset', config.name)))}-{digest[:10]}"


def _learner(settings: FeaturesConfig, first: Stream, device: torch.device) -> Learner:
    if settings.augment:
        first = replace(first, experiences=[replace(one, noise=Shifted()) for one in first])
    network = build_network(
        settings.network,
        first[0].test.x.shape[-1],
        first.outputs,
        generator=torch.Generator().manual_seed(derived_seed(settings.seed, "weights")),
    )
    if not hasattr(network, "features"):
        raise InputError(
            f"expected a network that gives features, but got {settings.network.name!r}. "
            "Try stream.features.network.name=resnet."
        )
    return Learner(
        network.to(device),
        first,
        optimiser=partial(
            SGD, lr=settings.lr, momentum=settings.momentum, weight_decay=settings.weight_decay
        ),
        batch_size=settings.batch_size,
        iterations=settings.steps,
        seed=derived_seed(settings.seed, "batches") % 2**62,
    )


def _pretrain(
    learner: Learner, settings: FeaturesConfig, folder: Path, stop: Callable[[], bool]
) -> None:
    """All updates that are left, at a rate that falls to zero in a straight line."""
    done = settings.steps if learner.done else learner.update
    log = Log(folder)
    try:
        while not learner.done:
            for group in learner.optimiser.param_groups:
                group["lr"] = settings.lr * (1 - done / settings.steps)
            loss = float(learner.step())
            done += 1
            if not math.isfinite(loss):
                raise RunError(
                    f"the loss of the features' network became {loss} at update {done}. "
                    "Try a smaller stream.features.lr."
                )
            log.add(step=done, of=settings.steps, loss=loss)
            asked = stop()
            if asked or learner.done or done % SAVE_EVERY == 0:
                tensors, rest = split(learner.state_dict())
                write(folder, Checkpoint(tensors, {"learner": rest}))
            if asked:
                raise StoppedError
    finally:
        log.close()


def _features(learner: Learner, rest: Stream, device: torch.device) -> Checkpoint:
    network: Any = learner.model.eval()

    def extractor(x: Tensor) -> Tensor:
        seen: Tensor = network.features(x.to(device))
        return seen.cpu()

    tensors: dict[str, Tensor] = {}
    tasks = []
    for one in with_features(rest, extractor):
        tasks.append({"name": one.name, "classes": list(one.classes)})
        for half, data in (("train", one.train), ("test", one.test)):
            tensors |= {f"{one.task}/{half}/x": data.x, f"{one.task}/{half}/y": data.y}
    accuracy = float(learner.matrix[-1, 0])
    return Checkpoint(tensors, {"tasks": tasks, "name": rest.name, "pretrained": accuracy})


def _stream(saved: Checkpoint) -> Stream:
    def data(task: int, half: str) -> Data:
        return Data(saved.tensors[f"{task}/{half}/x"], saved.tensors[f"{task}/{half}/y"])

    tasks = [
        Experience(one["name"], i, data(i, "train"), data(i, "test"), (*one["classes"],))
        for i, one in enumerate(saved.values["tasks"])
    ]
    return Stream(f"{saved.values['name']}, features", tasks)
