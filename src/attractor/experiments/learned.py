"""Optimisers, learned or made by hand, on the same learners: the work of a run."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Generator, nn
from torch.optim import SGD, Adam, RMSprop

from attractor.errors import InputError, unknown
from attractor.experiments.build import build_device, build_task, derived_seed
from attractor.experiments.learned_config import LearnedRun, LearnerConfig, OptimiserConfig
from attractor.experiments.learning import Learning
from attractor.experiments.networks import build_network
from attractor.experiments.preparation import Factory, MetaTraining, Nothing, Preparation, Tuning
from attractor.meta import Problem
from attractor.optimisers import OPTIMISERS, Rule
from attractor.runs.drive import Context
from attractor.tasks import Task
from attractor.training.chained import Chained

HAND_MADE: dict[str, Any] = {"adam": Adam, "rmsprop": RMSprop, "sgd": SGD}


def build(config: LearnedRun, context: Context) -> "LearnedWork":
    """The work of a run."""
    torch.set_num_threads(config.train.threads)
    return LearnedWork(*parts(config, context.data))


def parts(
    config: LearnedRun, data: Path | None
) -> tuple[Preparation, Callable[[Factory], Learning], list[Task]]:
    """What prepares the optimiser of a run, what makes its learner, and what both learn."""
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
            return Nothing(hand_made(chosen)), learning, [task]
        tried = partial(learning, purpose="tuning ", steps=settings.tune_steps or settings.steps)
        return Tuning(chosen.grid, tried, partial(hand_made, chosen)), learning, [task]
    size = sum(p.numel() for p in learner(config.network, task, generator=Generator()).parameters())
    rule = build_rule(chosen, size, generator=generator("rule")).to(device)
    if chosen.pretrained is not None:
        return Nothing(rule), learning, [task]
    torch.manual_seed(derived_seed(config.seed, "global"))
    meta = config.meta
    tasks = [build_task(one, data) for one in meta.tasks] or [task]
    network = meta.network or config.network
    problems = [
        Problem(_maker(network, one, device), one, meta.batch_size or settings.batch_size)
        for one in tasks
    ]
    return MetaTraining(rule, problems, meta, generator("meta")), learning, [task, *tasks]


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
    kind = HAND_MADE[config.name]
    options = config.options | ({} if lr is None else {"lr": lr})
    _check(config.name, kind, options, {"params"})
    try:
        kind([torch.zeros(1)], **options)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"expected options that torch's {config.name} can use, but got {options}: {error}. Try "
            f"{config.name}:lr=0.01."
        ) from error
    return partial(kind, **options)


def build_rule(config: OptimiserConfig, size: int, *, generator: Generator) -> Rule:
    """A learned optimiser of a configuration for a network of so many parameters."""
    if config.name not in OPTIMISERS:
        raise unknown("optimiser", config.name, [*OPTIMISERS, *HAND_MADE])
    kind = OPTIMISERS[config.name]
    if config.pretrained is not None:
        rule: Rule = kind.pretrained(config.pretrained)
        return rule
    options = config.options
    known = inspect.signature(kind).parameters
    _check(config.name, kind, options, {"generator"})
    if "size" in known and known["size"].default is inspect.Parameter.empty:
        options = {"size": size} | options
    if "generator" in known:
        options["generator"] = generator
    try:
        made: Rule = kind(**options)
    except TypeError as error:
        raise InputError(
            f"expected options that the optimiser {config.name} takes, but got "
            f"{config.options}: {error}. See docs/optimisers.md."
        ) from error
    return made


def _check(name: str, kind: Any, options: dict[str, Any], hidden: set[str]) -> None:
    parameters = inspect.signature(kind).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return
    for option in options:
        if option not in parameters or option in hidden:
            raise unknown(f"option of the optimiser {name}", option, {*parameters} - hidden)


class LearnedWork(Chained[Learning]):
    """First the optimiser is made ready, then the learner is trained.

    Args:
        preparation: what makes the optimiser ready.
        learning: makes the learner of an optimiser.
        data: the task, and those on which the optimiser is trained if they are others.
    """

    def __init__(
        self,
        preparation: Preparation,
        learning: Callable[[Factory], Learning],
        data: Sequence[Task],
    ) -> None:
        self.preparation, self.data = preparation, data
        super().__init__(
            preparation, lambda: learning(preparation.optimiser()), planned=preparation.planned
        )

    def outcome(self) -> dict[str, Any]:
        assert self.second is not None
        found = self.second.outcome()
        if isinstance(self.preparation, Tuning):
            found["lr"] = self.preparation.rate
        return found
