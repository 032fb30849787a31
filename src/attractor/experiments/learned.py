"""Optimisers, learned or made by hand, on the same learners: the work of a run."""

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Generator, nn

from attractor.errors import unknown
from attractor.experiments import checkpoint
from attractor.experiments.build import build_device, build_task, derived_seed
from attractor.experiments.checkpoint import Checkpoint
from attractor.experiments.learned_config import LearnedRun, LearnerConfig, OptimiserConfig
from attractor.experiments.learning import Learning
from attractor.experiments.networks import build_network
from attractor.experiments.preparation import Factory, MetaTraining, Nothing, Preparation, Tuning
from attractor.experiments.work import Row, Work
from attractor.meta import Problem
from attractor.optimisers import OPTIMISERS, Rule
from attractor.tasks import Task

HAND_MADE = [name for name, entry in OPTIMISERS.items() if not entry.learned]


def build(config: LearnedRun, data: Path | None) -> Work:
    """The work of a run."""
    torch.set_num_threads(config.train.threads)
    return LearnedWork(*parts(config, data))


def parts(
    config: LearnedRun, data: Path | None
) -> tuple[Preparation, Callable[[Factory], Learning]]:
    """What prepares the optimiser of a run, and what makes its learner."""
    device = build_device(config.train.device)
    task = build_task(config.task, data)
    settings = config.train

    def learning(factory: Factory, *, purpose: str = "", steps: int = settings.steps) -> Learning:
        """The learner of the seed; another one, with batches of its own, for another purpose."""
        torch.manual_seed(derived_seed(config.seed, "global"))
        network = learner(config.network, task, generator=generator(f"{purpose}weights"))
        network.to(device)
        return Learning(
            settings.model_copy(update={"steps": steps}),
            task,
            network,
            factory(network.parameters()),
            task.sampler(settings.batch_size, generator=generator(f"{purpose}batches")),
        )

    def generator(purpose: str) -> Generator:
        return torch.Generator().manual_seed(derived_seed(config.seed, purpose))

    chosen = config.optimiser
    if chosen.name in HAND_MADE:
        if not chosen.grid:
            return Nothing(hand_made(chosen)), learning
        tried = partial(learning, purpose="tuning ", steps=settings.tune_steps or settings.steps)
        return Tuning(chosen.grid, tried, partial(hand_made, chosen)), learning
    size = sum(p.numel() for p in learner(config.network, task, generator=Generator()).parameters())
    rule = build_rule(chosen, size, generator=generator("rule")).to(device)
    if chosen.pretrained is not None:
        return Nothing(rule), learning
    torch.manual_seed(derived_seed(config.seed, "global"))
    meta = config.meta
    tasks = [build_task(one, data) for one in meta.tasks] or [task]
    network = meta.network or config.network
    problems = [
        Problem(_maker(network, one, device), one, meta.batch_size or settings.batch_size)
        for one in tasks
    ]
    return MetaTraining(rule, problems, meta, generator("meta")), learning


def learner(config: LearnerConfig, task: Task, *, generator: Generator) -> nn.Module:
    """The network of a run, with its initial weights."""
    network = build_network(config, task.input_size, task.output_size, generator=generator)
    if config.bound is not None:
        for parameter in network.parameters():
            if parameter.dim() > 1:
                nn.init.uniform_(parameter, -config.bound, config.bound, generator=generator)
            else:
                nn.init.zeros_(parameter)
    return network


def _maker(
    config: LearnerConfig, task: Task, device: torch.device
) -> Callable[[Generator], nn.Module]:
    """Makes the learners of meta-training, whose batch norm may keep no statistics."""
    if config.name == "resnet":
        config = config.model_copy(update={"track": False})
    return lambda g: learner(config, task, generator=g).to(device)


def hand_made(config: OptimiserConfig, lr: float | None = None) -> Factory:
    """An optimiser of torch with the options of a configuration, or another rate."""
    return OPTIMISERS[config.name](**config.options | ({} if lr is None else {"lr": lr}))


def build_rule(config: OptimiserConfig, size: int, *, generator: Generator) -> Rule:
    """A learned optimiser of a configuration for a network of so many parameters."""
    if config.name not in OPTIMISERS:
        raise unknown("optimiser", config.name, OPTIMISERS)
    entry = OPTIMISERS[config.name]
    if config.pretrained is not None:
        rule: Rule = entry.kind.pretrained(config.pretrained)
        return rule
    options: dict[str, Any] = dict(config.options)
    if entry.options.get("size") is inspect.Parameter.empty:
        options = {"size": size} | options
    if entry.draws:
        options["generator"] = generator
    made = entry(**options)
    assert isinstance(made, Rule)
    return made


class LearnedWork(Work):
    """First the optimiser is made ready, then the learner is trained.

    Step 0 is where the learner starts, so that learners of all optimisers can be compared step by
    step; what makes an optimiser ready has the steps before.
    """

    def __init__(self, preparation: Preparation, learning: Callable[[Factory], Learning]) -> None:
        self.preparation, self.make = preparation, learning
        self.step = -preparation.planned
        self.learning: Learning | None = None

    @property
    def done(self) -> bool:
        return self.learning is not None and self.learning.done

    def advance(self) -> list[Row]:
        if not self.preparation.done:
            rows = self.preparation.advance()
            self.step = 0 if self.preparation.done else self.step + 1
            return rows
        if self.learning is None:
            self.learning = self.make(self.preparation.optimiser())
        rows = self.learning.advance()
        self.step = self.learning.step
        return rows

    def save(self) -> Checkpoint:
        prepared = self.preparation.save()
        tensors, values = {"preparation": prepared.tensors}, {"preparation": prepared.values}
        if self.learning is not None:
            learned = self.learning.save()
            tensors["learning"], values["learning"] = learned.tensors, learned.values
        return Checkpoint(checkpoint.merged(tensors), {"step": self.step, **values})

    def restore(self, saved: Checkpoint) -> None:
        tensors, values = saved
        prepared = Checkpoint(checkpoint.part(tensors, "preparation"), values["preparation"])
        self.preparation.restore(prepared)
        self.step = values["step"]
        if "learning" in values:
            self.learning = self.make(self.preparation.optimiser())
            learned = Checkpoint(checkpoint.part(tensors, "learning"), values["learning"])
            self.learning.restore(learned)

    def outcome(self) -> dict[str, Any]:
        assert self.learning is not None
        found = self.learning.outcome()
        if isinstance(self.preparation, Tuning):
            found["lr"] = self.preparation.rate
        return found
