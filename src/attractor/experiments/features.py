"""What a frozen network sees of a stream: pretrained on its first classes, computed once, kept."""

import hashlib
import json
import logging
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import SGD

from attractor.continual import Learner
from attractor.errors import InputError, RunError
from attractor.experiments.build import derived_seed
from attractor.experiments.continual_config import FeaturesConfig, StreamConfig
from attractor.experiments.networks import build_network
from attractor.runs.checkpoint import read_state, write_state
from attractor.runs.data import checksum
from attractor.runs.drive import Context, drive
from attractor.state import Nested
from attractor.tasks.streams import Data, Experience, Stream, with_features
from attractor.tasks.streams.incremental import Shifted
from attractor.training.process import Diverged, Row

logger = logging.getLogger(__name__)


class Source(NamedTuple):
    """The two parts of a stream: what to pretrain on, and the tasks; each is read when asked."""

    first: Callable[[], Stream]
    rest: Callable[[], Stream]


def kept_features(
    config: StreamConfig, source: Source, context: Context, *, device: torch.device
) -> Stream:
    """The tasks of a stream as features, from ``out/features``, or pretrained and written there.

    A process that comes while another makes them waits. Killed at any moment, the pretraining goes
    on from its last checkpoint. A damaged file is noticed by its checksum, and made again.

    Args:
        config: the stream and, under ``features``, the network and its pretraining.
        source: where the images come from; not asked if the features are there.
        context: the folder that holds all runs, and whether to stop.
        device: where to pretrain.
    """
    settings = config.features
    assert settings is not None
    folder = context.out / "features" / key(config)
    path = folder / "features.safetensors"
    if read_state(path) is None:
        path.unlink(missing_ok=True)

        def make() -> Pretraining:
            # not for -v alone: nothing else is seen until the first run starts
            logger.warning("pretraining a network for features; progress is in %s", folder)
            return Pretraining(_learner(settings, source.first(), device), settings)

        def write(process: Pretraining) -> dict[str, Any]:
            write_state(path, _features(process.learner, source.rest(), device))
            return {"accuracy": float(process.learner.matrix[-1, 0])}

        try:
            drive(
                make,
                folder,
                key=key(config),
                outcome=write,
                context=context,
                data=lambda process: checksum(process.learner.stream),
                threads=torch.get_num_threads(),
                makes=path,
                wait=True,
            )
        except Diverged as error:
            raise RunError(f"{error.reason}. {error.advice}") from error
    return _stream(read_state(path))


def key(config: StreamConfig) -> str:
    """The name of a folder, and a hash of all that decides what is in it."""
    assert config.features is not None
    content = {"name": config.name, **config.options, "features": config.features.model_dump()}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return f"{config.options.get('dataset', config.name)}-{digest[:10]}"


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


class Pretraining:
    """The updates of the network, at a rate that falls to zero in a straight line."""

    def __init__(self, learner: Learner, settings: FeaturesConfig) -> None:
        self.learner, self.settings = learner, settings
        self.step = 0

    @property
    def done(self) -> bool:
        return self.learner.done

    def advance(self) -> list[Row]:
        for group in self.learner.optimiser.param_groups:
            group["lr"] = self.settings.lr * (1 - self.step / self.settings.steps)
        loss = float(self.learner.step())
        self.step += 1
        if not math.isfinite(loss):
            raise Diverged(
                f"the loss of the features' network became {loss} at update {self.step}",
                "Try a smaller stream.features.lr.",
            )
        return [{"split": "train", "loss": loss}]

    def state_dict(self) -> Nested:
        return {"step": self.step, "learner": self.learner.state_dict()}

    def load_state_dict(self, state: Nested) -> None:
        self.learner.load_state_dict(state["learner"])
        self.step = state["step"]


def _features(learner: Learner, rest: Stream, device: torch.device) -> Nested:
    network: Any = learner.model.eval()

    def extractor(x: Tensor) -> Tensor:
        seen: Tensor = network.features(x.to(device))
        return seen.cpu()

    tasks = [
        {"name": one.name, "classes": one.classes, "train": [*one.train], "test": [*one.test]}
        for one in with_features(rest, extractor)
    ]
    return {"name": rest.name, "tasks": tasks}


def _stream(saved: Nested) -> Stream:
    tasks = [
        Experience(one["name"], i, Data(*one["train"]), Data(*one["test"]), one["classes"])
        for i, one in enumerate(saved["tasks"])
    ]
    return Stream(f"{saved['name']}, features", tasks)
