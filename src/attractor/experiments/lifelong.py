"""Learning a stream of tasks: the work of a run."""

import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.optim import SGD, Adam, RMSprop

from attractor.continual import STRATEGIES, Learner, Strategy, combine
from attractor.continual.saving import join, split
from attractor.errors import InputError, unknown
from attractor.experiments.build import build_device, derived_seed
from attractor.experiments.checkpoint import Checkpoint
from attractor.experiments.continual_config import ContinualRun, ContinualTrain, StreamConfig
from attractor.experiments.features import Source, kept_features
from attractor.experiments.networks import build_network
from attractor.experiments.work import DivergedError, Row, Work
from attractor.tables import lookup, make
from attractor.tasks.streams import STREAMS, Stream, inject_noise

NAMES = {
    "acc": "accuracy",
    "fa1": "first_task_accuracy",
    "aia": "average_incremental_accuracy",
    "bwt": "backward_transfer",
    "fwt": "forward_transfer",
    "forgetting": "forgetting",
}
"""The measures of a stream, as tables and reports name them."""


def build(config: ContinualRun, data: Path | None) -> Work:
    """The work of a run."""
    return ContinualWork(config, data)


def build_learner(
    config: ContinualRun, data: Path | None, out: Path, stop: Callable[[], bool]
) -> Learner:
    """The learner of a configuration, all of it made from the seed."""
    torch.set_num_threads(config.train.threads)
    device = build_device(config.train.device)
    stream = build_stream(config.stream, data, seed=config.seed, out=out, device=device, stop=stop)
    some = stream[0].some_test(1)
    network = build_network(
        config.network,
        some.x.shape[-1],
        stream.outputs,
        each_step=some.y.ndim > 1,
        generator=torch.Generator().manual_seed(derived_seed(config.seed, "weights")),
    )
    return Learner(
        network.to(device),
        stream,
        build_strategy(config.strategy.model_dump()),
        optimiser=_optimiser(config.train),
        batch_size=config.train.batch_size,
        iterations=config.train.steps,
        seed=derived_seed(config.seed, "batches") % 2**62,
    )


def build_stream(
    config: StreamConfig,
    data: Path | None,
    *,
    seed: int,
    out: Path,
    device: torch.device,
    stop: Callable[[], bool] = lambda: False,
) -> Stream:
    """The stream of a configuration, its permutations drawn from the seed."""
    stream_of = lookup("stream", STREAMS, config.name)
    known = inspect.signature(stream_of).parameters
    drawn = torch.Generator().manual_seed(derived_seed(seed, "stream"))
    given = {"tasks": config.tasks, "root": data, "generator": drawn}
    options = {name: value for name, value in given.items() if name in known} | config.options
    for name in config.options:
        if name not in known:
            raise unknown(f"option of the stream {config.name}", name, known)
    if config.features is None:
        stream = stream_of(**options)
    else:
        if "part" not in known:
            raise InputError(
                "expected a stream with first classes to pretrain its features on, but got "
                f"{config.name!r}. Try incremental_images, or leave stream.features out."
            )
        first = partial(stream_of, **options | {"part": "first"})
        source = Source(first, partial(stream_of, **options))
        stream = kept_features(config, source, out, device=device, stop=stop)
    stream = replace(stream, identity=config.identity)
    return inject_noise(stream, config.noise) if config.noise else stream


def build_strategy(config: dict[str, Any]) -> Strategy:
    """The strategy of a configuration, or several of them combined."""
    options = dict(config)
    also = options.pop("also", None)
    made: Strategy = make("strategy", STRATEGIES, options)
    return combine(made, build_strategy(also)) if also else made


def _optimiser(settings: ContinualTrain) -> Callable[..., Any]:
    match settings.optimiser:
        case "adam":
            return partial(Adam, lr=settings.lr)
        case "rmsprop":
            return partial(RMSprop, lr=settings.lr, momentum=settings.momentum)
        case "sgd":
            return partial(SGD, lr=settings.lr, momentum=settings.momentum)


class ContinualWork(Work):
    """Task after task; after each, the accuracies on all."""

    learner: Learner

    def __init__(self, config: ContinualRun, data: Path | None) -> None:
        self.config, self.data = config, data
        self.split = config.stream.options.get("held", "test")

    def prepare(self, out: Path, stop: Callable[[], bool]) -> None:
        self.learner = build_learner(self.config, self.data, out, stop)

    @property
    def done(self) -> bool:
        return self.learner.done

    def advance(self) -> list[Row]:
        task = self.learner.task
        loss = float(self.learner.step())
        if not math.isfinite(loss):
            raise DivergedError(
                f"the loss became {loss} at update {self.learner.update} of task {task + 1}",
                "Try a smaller train.lr, or another seed.",
            )
        self.step += 1
        rows: list[Row] = []
        if self.step % self.config.train.log_every == 0:
            rows.append({"split": "train", "loss": loss})
        if self.learner.task > task:
            now = self.learner.matrix[task + 1]
            each = {f"task_{i + 1}": float(a) for i, a in enumerate(now)}
            rows.append({"split": self.split, "accuracy": float(now[: task + 1].mean()), **each})
        return rows

    def outcome(self) -> dict[str, Any]:
        result = self.learner.result()
        return {
            "parameters": sum(p.numel() for p in result.model.parameters()),
            "split": self.split,
            "test": {NAMES[name]: value for name, value in result.metrics.items()},
            "matrix": result.matrix.tolist(),
        }

    def save(self) -> Checkpoint:
        tensors, rest = split(self.learner.state_dict())
        return Checkpoint(tensors, {"step": self.step, "learner": rest})

    def restore(self, saved: Checkpoint) -> None:
        self.learner.load_state_dict(join(saved.tensors, saved.values["learner"]))
        self.step = saved.values["step"]
