"""From the tables of a configuration to tasks, models and generators: what all kinds share."""

import hashlib
import inspect
from collections.abc import Mapping
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Generator, nn

from attractor.errors import InputError
from attractor.experiments.config import Settings
from attractor.models.table import Model, make_model, model_entry, model_name
from attractor.runs.drive import Context
from attractor.tables import lookup, make
from attractor.tasks import TASKS, Generate, StrokeDigits, Task
from attractor.training import Plan
from attractor.training.schedules import Schedule

Spec = dict[str, Any]
"""A table of a configuration: a ``name``, and options that are checked by it."""

SHOWN = {
    "vector": "flat",
    "image": "image",
    "sequence": "rows",
    "symbols": "rows",
    "strokes": "rows",
}
"""In which order a task shows images to a network, unless the configuration says another."""


class Updates(Settings):
    """What becomes of gradients and rates in each update; see `attractor.training.Plan`."""

    accumulate: int = Field(default=Plan.accumulate, ge=1)
    clip: float | None = Field(default=Plan.clip, gt=0)
    clip_value: float | None = Field(default=Plan.clip_value, gt=0)
    autocast: Literal["bfloat16"] | None = None
    schedule: Schedule | None = Plan.schedule
    """How the rate falls to zero by the last step; by default it stays."""

    @property
    def limits(self) -> dict[str, Any]:
        """These alone, by name."""
        return {name: getattr(self, name) for name in Updates.__annotations__}


def derived_seed(seed: int, purpose: str) -> int:
    """A seed of its own for each thing that is random, so that they do not move each other."""
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def seeded(seed: int, purpose: str) -> Generator:
    """A generator of its own for each thing that is random."""
    return torch.Generator().manual_seed(derived_seed(seed, purpose))


def device_of(name: str) -> torch.device:
    """The device of a name, once torch is known to be able to use it."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(
            f"expected a device that torch can use here, but got {name!r}. Try cpu."
        ) from error
    return device


def reads(model: Mapping[str, Any]) -> str | None:
    """What the network of a specification is shown of a sample; unknown of a user's own."""
    entry = model_entry(model_name(model))
    return entry.reads if isinstance(entry, Model) else None


def task_for(spec: Spec, model: Spec, context: Context) -> Task:
    """The task of a configuration; images are shown as its network reads them."""
    options = dict(spec)
    shown = reads(model)
    known = inspect.signature(lookup("task", TASKS, spec.get("name"))).parameters
    if "order" in known and shown is not None:
        options = {"order": SHOWN[shown]} | options
    task: Task = make("task", TASKS, options, root=context.data)
    told, fitting = showing(task)
    if shown is not None and shown not in fitting:
        ordered = "Leave task.order out, or try" if "order" in spec else "Try"
        raise InputError(
            f"expected a task that a {model_name(model)} network can read, but {spec['name']!r} "
            f"shows {told}. {ordered} {network_for(task)}."
        )
    return task


def network_for(task: Task) -> str:
    """The setting of a network that can read a task."""
    if isinstance(task, StrokeDigits):
        return "model.name=stroke_reader"
    if task.symbolic:
        once = task.answers == "once"
        return f"model.name={'pair_classifier' if once else 'language_model'}"
    if task.timed:
        return "model.cell=lstm"
    return f"model.name={'draw' if isinstance(task, Generate) else 'mlp'}"


def showing(task: Task) -> tuple[str, tuple[str, ...]]:
    """What a task shows, in words, and what the networks that can read it read."""
    if isinstance(task, StrokeDigits):
        return "strokes after which several digits are asked for", ("strokes",)
    if task.symbolic:
        return "numbers of symbols", ("symbols",)
    if task.timed:
        return "a sequence", ("sequence",)
    return "all at once", ("vector", "image")


def model_for(spec: Spec, task: Task, *, generator: Generator) -> nn.Module:
    """The network of a configuration with its initial weights, fitting a task."""
    return make_model(
        spec,
        task.features,
        task.output_size,
        each_step=task.answers == "each step",
        generator=generator,
    )
