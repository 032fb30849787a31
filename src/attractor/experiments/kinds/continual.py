"""One model, one strategy and one optimiser on a stream of tasks."""

import inspect
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import torch
from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from attractor.continual import Learner, callback_named
from attractor.continual.metrics import MEASURES, NAMES
from attractor.errors import InputError
from attractor.experiments.config import Kind, RunConfig
from attractor.experiments.kinds.features import Features, Source, kept_features
from attractor.experiments.kinds.parts import Spec, Updates, derived_seed, device_of, seeded
from attractor.experiments.kinds.patches import kept_patches
from attractor.experiments.work import Work
from attractor.models import make_model
from attractor.runs.drive import Context
from attractor.tables import lookup, make
from attractor.tasks.streams import STREAMS, Stream, blurred, inject_noise, with_valid


class Train(Updates):
    """How a learner is trained; a schedule is of each task."""

    newer = (*Updates.__annotations__, "patience", "eval_every", "callbacks")
    steps: int | list[int]  # type: ignore[assignment]
    """Updates of each task: one number for all, or one for each."""
    batch_size: int = Field(default=10, ge=1)
    log_every: int = Field(default=10, ge=1)
    patience: int | None = Field(default=None, ge=1)
    """End a task once its validation loss has not improved for so many measurements."""
    eval_every: int | None = Field(default=None, ge=1)
    """Updates between those measurements; the stream's ``valid`` says on what."""
    callbacks: list[str] = Field(default_factory=list)
    """What is called after each update: keys of ``CALLBACKS``, or ``module:function``."""

    @field_validator("steps", mode="plain")
    @classmethod
    def _counted(cls, value: Any) -> Any:
        each = value if isinstance(value, list) else [value]
        if not each or not all(map(_counts, each)):
            raise PydanticCustomError(
                "steps",
                "Input should be a whole number greater than or equal to 1, or a list of them, one "
                "for each task",
            )
        return [int(n) for n in each] if isinstance(value, list) else int(value)


def _counts(value: Any) -> bool:
    """Whether a value is a whole number from 1 on."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and value >= 1 and value == int(value)


class ContinualRun(RunConfig):
    """One model, one strategy, one optimiser, one stream."""

    kind: Literal["continual"] = "continual"
    stream: Spec
    """A name and options; ``identity`` tells the task of each sample, in the test too; ``noise`` is
    the share of the pixels that are shuffled in training data, or a table with that ``fraction``
    and the options of `inject_noise`; ``valid`` the share of the training samples that is kept for
    validation, ``blurred`` the share that comes at the time of other tasks, ``patches`` a table
    with the options of `kept_patches`, which shows features of patches in the place of images."""
    features: Features | None = None
    """Show a network's features instead of the data; it learns the stream's first classes."""
    model: Spec
    strategy: Spec = Field(default_factory=lambda: {"name": "naive"})
    """A name and options; ``also`` is another strategy on top of it."""
    optimiser: Spec | None = None
    """A name and options; by default SGD at 0.01, as the thesis has it."""
    train: Train

    @property
    def total(self) -> int | None:
        # imports torch, for which reading a file need not wait
        from attractor.tasks.streams.table import task_count

        if isinstance(self.train.steps, list):
            return sum(self.train.steps)
        options = {name: value for name, value in self.stream.items() if name != "name"}
        tasks = task_count(str(self.stream.get("name")), options)
        return None if tasks is None else self.train.steps * tasks


def build(config: ContinualRun, context: Context) -> Work:
    """The learner of a configuration, all of it made from the seed."""
    torch.set_num_threads(config.train.threads)
    device = device_of(config.train.device)
    stream = build_stream(config, context, device)
    first = stream[0].first("test", 1)
    model = make_model(
        config.model,
        first.features,
        stream.outputs,
        each_step=first.y.ndim > 1,
        generator=seeded(config.seed, "weights"),
    )
    spec = {"name": "sgd", "lr": 0.01} if config.optimiser is None else config.optimiser
    split = config.stream.get("held", "test")

    learner = Learner(
        model.to(device),
        stream,
        config.strategy,
        optimiser=spec,
        batch_size=config.train.batch_size,
        iterations=config.train.steps,
        seed=derived_seed(config.seed, "batches") % 2**62,
        log_every=config.train.log_every,
        split=split,
        patience=config.train.patience,
        eval_every=config.train.eval_every,
        callbacks=[callback_named(name) for name in config.train.callbacks],
        **config.train.limits,
    )
    return Work(learner, stream, lambda: {**outcome(learner), "split": split})


def outcome(learner: Learner) -> dict[str, Any]:
    """What a learner ends with: its size, the measures of its matrix, and the matrix."""
    result = learner.result()
    measures = {**learner.stream[0].measures, **MEASURES}
    return {
        "parameters": sum(p.numel() for p in result.model.parameters()),
        "test": {NAMES[name]: value for name, value in result.metrics.items()},
        "measures": {name: [*one] for name, one in measures.items()},
        "matrix": result.matrix.tolist(),
        "memory_bytes": result.memory_bytes,
        "seconds_per_task": [round(one, 3) for one in result.seconds],
    }


def build_stream(config: ContinualRun, context: Context, device: torch.device) -> Stream:
    """The stream of a configuration, its permutations drawn from the seed."""
    options = dict(config.stream)
    identity, noise = options.pop("identity", False), options.pop("noise", 0.0)
    valid, soft = options.pop("valid", None), options.pop("blurred", None)
    patches = options.pop("patches", None)
    given = {"root": context.data, "generator": seeded(config.seed, "stream")}
    images = partial(make, "stream", STREAMS, options, **given)
    if patches is not None:
        if config.features is not None:
            raise InputError(
                "expected either features or patches in the place of the images, but got both. "
                "Leave one of them out."
            )
        spec = {"name": "patches", **patches}
        table = {"patches": partial(kept_patches, options, images, context)}
        stream: Stream = make("patches", table, spec)
    elif config.features is None:
        stream = images()
    else:
        name = options.get("name")
        if "part" not in inspect.signature(lookup("stream", STREAMS, name)).parameters:
            raise InputError(
                "expected a stream with first classes to pretrain its features on, but got "
                f"{name!r}. Try incremental_images, or leave the features out."
            )
        source = Source(
            partial(make, "stream", STREAMS, options | {"part": "first"}, **given),
            images,
        )
        stream = kept_features(config.features, options, source, context, device=device)
    stream = replace(stream, identity=identity)
    if valid is not None:
        stream = with_valid(stream, valid, generator=seeded(config.seed, "valid"))
    if isinstance(noise, dict):
        stream = make("noise", {"noise": inject_noise}, {"name": "noise", **noise}, stream=stream)
    elif noise:
        stream = inject_noise(stream, noise)
    if soft is not None:
        stream = blurred(stream, soft, generator=seeded(config.seed, "blurred"))
    return stream


KIND = Kind(ContinualRun, build)
