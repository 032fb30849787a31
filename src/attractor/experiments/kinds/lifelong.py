"""One recurrent network and one strategy on levels that grow harder; the network may grow."""

from dataclasses import fields
from functools import partial
from typing import Any, Literal

import torch
from pydantic import Field

from attractor.continual.lifelong import TRIGGERS, Curriculum, Rules, levels
from attractor.continual.lifelong.levels import KINDS, Levels
from attractor.continual.lifelong.measures import MEASURES
from attractor.experiments.config import Kind, RunConfig, Settings
from attractor.experiments.kinds.parts import Spec, derived_seed, device_of, seeded
from attractor.experiments.work import Work
from attractor.models import make_model
from attractor.runs.drive import Context
from attractor.tables import make


class Train(Settings):
    """How levels are learnt and passed; see `attractor.continual.lifelong.Rules`."""

    newer = ("trigger",)
    steps: int = Field(default=Rules.steps, ge=1)
    batch_size: int = Field(default=Rules.batch_size, ge=1)
    window: int = Field(default=Rules.window, ge=1)
    threshold: float = Field(default=Rules.threshold, ge=0, le=1)
    grow_to: int | None = Field(default=Rules.grow_to, ge=1)
    after: int = Field(default=Rules.after, ge=1)
    growths: int = Field(default=Rules.growths, ge=1)
    noise: float = Field(default=Rules.noise, ge=0)
    rate_after: float = Field(default=Rules.rate_after, gt=0)
    clip_value: float | None = Field(default=Rules.clip_value, gt=0)
    held_out: int = Field(default=Rules.held_out, ge=1)
    log_every: int = Field(default=100, ge=1)
    trigger: Spec | None = None
    """The name of a signal at which the network grows before a failure, and options."""

    @property
    def rules(self) -> Rules:
        names = {one.name for one in fields(Rules)}
        return Rules(**{name: value for name, value in self if name in names})


class LifelongRun(RunConfig):
    """One network, one strategy, one optimiser, levels of one kind."""

    kind: Literal["lifelong"] = "lifelong"
    stream: Spec
    """The name of a kind of levels, and options: ``first``, ``step``, ``count``."""
    model: Spec
    strategy: Spec = Field(default_factory=lambda: {"name": "naive"})
    """A name and options; ``also`` is another strategy on top of it."""
    optimiser: Spec = Field(default_factory=lambda: {"name": "adam", "lr": 0.001})
    train: Train

    @property
    def total(self) -> int | None:
        return None  # how far it comes is what is measured


def build(config: LifelongRun, context: Context) -> Work:
    """The learner of a configuration, all of it made from the seed."""
    torch.set_num_threads(config.train.threads)
    device = device_of(config.train.device)
    table = {name: partial(levels, name) for name in KINDS}
    given = {"root": context.data} if config.stream.get("name") == "strokes" else {}
    stream: Levels = make("levels", table, {**config.stream, **given})
    trigger = config.train.trigger
    model = make_model(
        config.model,
        (stream[0].input_size,),
        stream[0].output_size,
        each_step=stream[0].answers == "each step",
        generator=seeded(config.seed, "weights"),
    )
    learner = Curriculum(
        model.to(device),
        stream,
        config.strategy,
        optimiser=config.optimiser,
        rules=config.train.rules,
        trigger=None if trigger is None else make("trigger", TRIGGERS, trigger),
        seed=derived_seed(config.seed, "batches") % 2**62,
        log_every=config.train.log_every,
    )
    return Work(learner, stream, lambda: outcome(learner))


def outcome(learner: Curriculum) -> dict[str, Any]:
    """What a learner ends with: how far it came, and what it kept."""
    result = learner.result()
    reached = len(result.current)
    return {
        "parameters": sum(p.numel() for p in learner.model.parameters()),
        "test": {name: value for name, value in result.metrics.items() if value == value},
        "measures": {name: [*one] for name, one in MEASURES.items()},
        "leading": "levels",  # accuracies at different levels do not compare
        "matrix": result.matrix[:reached].tolist(),
        "current": list(result.current),
        "per_task_previous": result.per_task_previous,
        "per_task_future": result.per_task_future,
        "grew_at": [place + 1 for place in result.expansions],
        "parameters_per_level": list(result.parameters),
        "seconds_per_level": [round(one, 3) for one in learner.seconds[:reached]],
    }


KIND = Kind(LifelongRun, build)
