"""From a configuration to tasks, models, optimisers and generators: nothing else reads one."""

import hashlib
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Generator, nn
from torch.optim import SGD, Adam, Optimizer, RMSprop

from attractor.cells import compose
from attractor.errors import InputError, unknown
from attractor.experiments.config import TaskConfig
from attractor.experiments.kinds import ModelConfig, SequenceRun, TrainConfig
from attractor.models import SequenceClassifier, SequenceTagger
from attractor.tasks import TASKS, Sampler, Task


@dataclass(frozen=True)
class Parts:
    """All that a run needs, made from its seed."""

    task: Task
    model: nn.Module
    optimiser: Optimizer
    sampler: Sampler
    generator: Generator
    device: torch.device


def build_parts(config: SequenceRun, data: Path | None = None) -> Parts:
    """Make the parts of a run, and seed torch's global generator for what accepts no other."""
    torch.set_num_threads(config.train.threads)
    device = build_device(config.train.device)
    torch.manual_seed(derived_seed(config.seed, "global"))
    generator = torch.Generator().manual_seed(derived_seed(config.seed, "batches"))
    task = build_task(config.task, data)
    model = build_model(config.model, task, seed=config.seed).to(device)
    return Parts(
        task=task,
        model=model,
        optimiser=build_optimiser(config.train, model),
        sampler=task.sampler(config.train.batch_size, generator=generator),
        generator=generator,
        device=device,
    )


def derived_seed(seed: int, purpose: str) -> int:
    """A seed of its own for each thing that is random, so that they do not move each other."""
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def build_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(
            f"expected a device that torch can use here, but got {name!r}. Try cpu."
        ) from error
    return device


def build_task(config: TaskConfig, data: Path | None) -> Task:
    if config.name not in TASKS:
        raise unknown("task", config.name, TASKS)
    made: Any = TASKS[config.name]
    known = {
        name
        for name, parameter in inspect.signature(made.__init__).parameters.items()
        if name not in ("self", "root")
    }
    for name in config.options:
        if name not in known:
            raise unknown(f"option of the task {config.name}", name, known)
    root = {"root": data} if "root" in inspect.signature(made.__init__).parameters else {}
    task: Task = made(**config.options, **root)
    return task


def build_model(config: ModelConfig, task: Task, *, seed: int) -> nn.Module:
    if not task.timed:
        raise InputError(
            f"expected a task that shows a sequence to the cell {config.cell}, but its images come "
            "at once. Try --set task.order=rows."
        )
    kind = SequenceClassifier if task.answers == "once" else SequenceTagger
    cell = build_cell(config)
    try:
        return kind(
            cell,
            task.input_size,
            config.hidden_size,
            task.output_size,
            num_layers=config.num_layers,
            bidirectional=config.bidirectional,
            dropout=config.dropout,
            generator=torch.Generator().manual_seed(derived_seed(seed, "weights")),
            **config.options,
        )
    except TypeError as error:
        raise InputError(
            f"expected values that the cell {config.cell} can use, but got {config.options}: "
            f"{error}. See docs/cells for its options."
        ) from error


def build_cell(config: ModelConfig) -> Any:
    """The cell by its key, with the normalisers and regularisers that are asked for."""
    for name in config.options:
        if name in ("batch_first", "device", "dtype", "generator"):
            raise InputError(
                f"expected options of the cell {config.cell}, but got {name!r}, which is not for a "
                "configuration to choose. Leave it out; the device is train.device."
            )
    if not config.compose:
        return config.cell
    known = [p for p in inspect.signature(compose).parameters if p != "cell"]
    for name in config.compose:
        if name not in known:
            raise unknown("key of model.compose", name, known)
    return compose(config.cell, **config.compose)


def build_optimiser(config: TrainConfig, model: nn.Module) -> Optimizer:
    parameters = model.parameters()
    match config.optimiser:
        case "adam" | "amsgrad":
            return Adam(parameters, lr=config.lr, amsgrad=config.optimiser == "amsgrad")
        case "rmsprop":
            return RMSprop(parameters, lr=config.lr, momentum=config.momentum)
        case "sgd":
            return SGD(parameters, lr=config.lr, momentum=config.momentum)
