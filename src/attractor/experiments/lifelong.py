"""Learning a stream of tasks: the work of a run."""

import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch.optim import SGD, Adam, RMSprop

from attractor.continual import STRATEGIES, Learner, Strategy, combine
from attractor.errors import InputError, unknown
from attractor.experiments.build import build_device, derived_seed
from attractor.experiments.continual_config import ContinualRun, ContinualTrain, StreamConfig
from attractor.experiments.features import Source, kept_features
from attractor.experiments.networks import build_network
from attractor.runs.drive import Context
from attractor.state import Nested
from attractor.tasks.streams import STREAMS, Stream, inject_noise
from attractor.training.process import Diverged, Row

NAMES = {
    "acc": "accuracy",
    "fa1": "first_task_accuracy",
    "aia": "average_incremental_accuracy",
    "bwt": "backward_transfer",
    "fwt": "forward_transfer",
    "forgetting": "forgetting",
}
"""The measures of a stream, as tables and reports name them."""


def build(config: ContinualRun, context: Context) -> "ContinualWork":
    """The work of a run."""
    return ContinualWork(config.train.log_every, build_learner(config, context))


def build_learner(config: ContinualRun, context: Context) -> Learner:
    """The learner of a configuration, all of it made from the seed."""
    torch.set_num_threads(config.train.threads)
    device = build_device(config.train.device)
    stream = build_stream(config.stream, context, seed=config.seed, device=device)
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
    config: StreamConfig, context: Context, *, seed: int, device: torch.device
) -> Stream:
    """The stream of a configuration, its permutations drawn from the seed."""
    if config.name not in STREAMS:
        raise unknown("stream", config.name, STREAMS)
    make = STREAMS[config.name]
    known = inspect.signature(make).parameters
    drawn = torch.Generator().manual_seed(derived_seed(seed, "stream"))
    given = {"tasks": config.tasks, "root": context.data, "generator": drawn}
    options = {name: value for name, value in given.items() if name in known} | config.options
    for name in config.options:
        if name not in known:
            raise unknown(f"option of the stream {config.name}", name, known)
    if config.features is None:
        stream = make(**options)
    else:
        if "part" not in known:
            raise InputError(
                "expected a stream with first classes to pretrain its features on, but got "
                f"{config.name!r}. Try incremental_images, or leave stream.features out."
            )
        source = Source(partial(make, **options | {"part": "first"}), partial(make, **options))
        stream = kept_features(config, source, context, device=device)
    stream = replace(stream, identity=config.identity)
    return inject_noise(stream, config.noise) if config.noise else stream


def build_strategy(config: dict[str, Any]) -> Strategy:
    """The strategy of a configuration, or several of them combined."""
    options = dict(config)
    name, also = options.pop("name"), options.pop("also", None)
    if name not in STRATEGIES:
        raise unknown("strategy", name, STRATEGIES)
    known = inspect.signature(STRATEGIES[name]).parameters
    for option in options:
        if option not in known:
            raise unknown(f"option of the strategy {name}", option, known)
    made = STRATEGIES[name](**options)
    return combine(made, build_strategy(also)) if also else made


def _optimiser(settings: ContinualTrain) -> Callable[..., Any]:
    match settings.optimiser:
        case "adam":
            return partial(Adam, lr=settings.lr)
        case "rmsprop":
            return partial(RMSprop, lr=settings.lr, momentum=settings.momentum)
        case "sgd":
            return partial(SGD, lr=settings.lr, momentum=settings.momentum)


class ContinualWork:
    """Task after task; after each, the accuracies on all.

    Args:
        log_every: updates between rows of the training loss.
        learner: what learns.
    """

    def __init__(self, log_every: int, learner: Learner) -> None:
        self.log_every, self.learner, self.data = log_every, learner, learner.stream
        self.step = 0

    @property
    def done(self) -> bool:
        return self.learner.done

    def advance(self) -> list[Row]:
        task = self.learner.task
        loss = float(self.learner.step())
        if not math.isfinite(loss):
            raise Diverged(
                f"the loss became {loss} at update {self.learner.update} of task {task + 1}",
                "Try a smaller train.lr, or another seed.",
            )
        self.step += 1
        rows: list[Row] = []
        if self.step % self.log_every == 0:
            rows.append({"split": "train", "loss": loss})
        if self.learner.task > task:
            now = self.learner.matrix[task + 1]
            each = {f"task_{i + 1}": float(a) for i, a in enumerate(now)}
            rows.append({"split": "valid", "accuracy": float(now[: task + 1].mean()), **each})
        return rows

    def outcome(self) -> dict[str, Any]:
        result = self.learner.result()
        return {
            "parameters": sum(p.numel() for p in result.model.parameters()),
            "test": {NAMES[name]: value for name, value in result.metrics.items()},
            "matrix": result.matrix.tolist(),
        }

    def state_dict(self) -> Nested:
        return {"step": self.step, "learner": self.learner.state_dict()}

    def load_state_dict(self, state: Nested) -> None:
        self.learner.load_state_dict(state["learner"])
        self.step = state["step"]
