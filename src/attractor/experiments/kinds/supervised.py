"""One model on one task with one optimiser, which may be tuned or meta-trained first."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Generator, nn

from attractor.cells import TARDISCell, compile_steps, read_alone
from attractor.errors import InputError
from attractor.experiments.config import Kind, RunConfig
from attractor.experiments.kinds.meta import Meta, begun, checked_random, trainer_of
from attractor.experiments.kinds.parts import (
    Spec,
    Updates,
    derived_seed,
    device_of,
    model_for,
    seeded,
    task_for,
)
from attractor.experiments.work import Work
from attractor.measures import Measure
from attractor.meta import Distribution, MetaTrainer, Problem
from attractor.meta.distribution import quieter
from attractor.models.table import model_name
from attractor.optimisers import Learned, Maker, Rule, attach, choose, sparsity
from attractor.optimisers.table import optimiser_entry
from attractor.runs.drive import Context
from attractor.tasks import Task
from attractor.training import Chained, Dense, Plan, Supervised, Tuning, hold, smallest

MEASURES = {
    "sparsity": Measure("none", "share"),
    "steps_to_solve": Measure("min", "steps"),
    "solved": Measure("max", "share"),
}
"""What is measured of any task; how much of a network is pruned does not say how good it is."""


class Train(Updates):
    """How a model is trained; see `attractor.training.Plan`."""

    newer = ("prune", "rewind")

    batch_size: int = Field(default=Plan.batch_size, ge=1)
    log_every: int = Field(default=Plan.log_every, ge=1)
    eval_every: int = Field(default=100, ge=1)
    eval_batch_size: int = Field(default=Plan.eval_batch_size, ge=1)
    eval_batches: int | None = Field(default=Plan.eval_batches, ge=1)
    """Held-out batches, the first ones; by default all."""
    judge: str = Plan.judge
    """The measure on validation data by which the best is told."""
    stop_below: float | None = Field(default=Plan.stop_below, gt=0)
    patience: int | None = Field(default=Plan.patience, ge=1)
    keep_best: bool = Plan.keep_best
    average_after: int | None = Field(default=Plan.average_after, ge=1)
    average_when_stale: int | None = Field(default=Plan.average_when_stale, ge=1)
    """Average weights once validation is worse than so many measurements ago: NT-ASGD."""
    tune_steps: int | None = Field(default=None, ge=1)
    """Updates with each learning rate of a grid; by default as many as ``steps``."""
    compile: bool = False
    """Compile the time loop of recurrent networks."""
    prune: float | None = Field(default=None, gt=0, lt=1)
    """Then set this share of the weights, the smallest, to zero, and train as long again."""
    rewind: bool = False
    """Train again from the initial weights, as a lottery ticket, and not from those at hand."""

    @property
    def plan(self) -> Plan:
        names = Plan.__dataclass_fields__.keys()
        return Plan(**{name: value for name, value in self if name in names})


class SupervisedRun(RunConfig):
    """One model, one task, one optimiser."""

    kind: Literal["supervised"] = "supervised"
    task: Spec
    model: Spec
    optimiser: Spec = Field(default_factory=lambda: {"name": "adam"})
    """A name and options; ``grid`` are learning rates of which the best on validation data is
    taken, ``pretrained`` names the weights of a learned one that come with the package."""
    meta: Meta | None = None
    """How a learned optimiser is meta-trained first; by default it is not."""
    train: Train


def build(config: SupervisedRun, context: Context) -> Work:
    """What makes the optimiser ready, if it is not, and then the training."""
    torch.set_num_threads(config.train.threads)
    made = _Made(config, context)
    spec = dict(config.optimiser)
    grid = spec.pop("grid", None)
    if _pruned(config, grid):
        dense = Dense(made.training(spec))
        return made.work(dense, lambda: made.again(spec, dense.training))
    if grid is not None:
        steps = config.train.tune_steps or config.train.steps
        tuning = Tuning(
            _rates(grid),
            lambda lr: made.training({**spec, "lr": lr}, purpose="tuning ", steps=steps),
        )
        return made.work(tuning, lambda: made.training({**spec, "lr": tuning.rate}))
    if config.meta is not None and _untrained(spec):
        trainer = made.trainer(spec, config.meta)
        return made.work(trainer, lambda: made.training(trainer.rule))
    return made.work(None, lambda: made.training(spec))


def meta_training(config: SupervisedRun, context: Context) -> MetaTrainer:
    """The meta-training of a run alone, without what follows."""
    torch.set_num_threads(config.train.threads)
    if config.meta is None or not _untrained(config.optimiser):
        raise InputError(
            f"expected an optimiser to meta-train, but {config.label} is made by hand or comes "
            "with its weights. Try --only with the label of another."
        )
    return _Made(config, context).trainer(config.optimiser, config.meta)


class _Made:
    """What a configuration asks for, made from its seed."""

    def __init__(self, config: SupervisedRun, context: Context) -> None:
        self.config, self.context = config, context
        self.device = device_of(config.train.device)
        self.task = task_for(config.task, config.model, context)

    def training(
        self, optimiser: Spec | Rule, *, purpose: str = "", steps: int | None = None
    ) -> Supervised:
        """The training of the seed; another one, with batches of its own, for another purpose."""
        config = self.config
        plan = config.train.plan if steps is None else replace(config.train.plan, steps=steps)
        torch.manual_seed(derived_seed(config.seed, "global"))
        model = model_for(config.model, self.task, generator=self.seeded(f"{purpose}weights"))
        model.to(self.device)
        if config.train.compile:
            _check_compiler()
            compile_steps(model, steps=30)
        make = optimiser if isinstance(optimiser, Rule) else self.maker(optimiser, model)
        attached = attach(make, model)
        learned = isinstance(attached, Learned) and attached.rule.prunes
        prunes = learned or config.train.prune is not None
        return Supervised(
            model,
            self.task,
            attached,
            plan,
            generator=self.seeded(f"{purpose}batches"),
            also=(lambda: {"sparsity": sparsity(model)}) if prunes else dict,
        )

    def again(self, spec: Spec, before: Supervised) -> Supervised:
        """The training of what is left of a network that was trained before."""
        assert self.config.train.prune is not None
        kept = smallest(before.model, self.config.train.prune)
        training = self.training(spec)
        if not self.config.train.rewind:
            training.model.load_state_dict(before.model.state_dict())
        hold(training.model, training.optimiser, kept)
        return training

    def maker(self, spec: Spec, model: nn.Module) -> Maker:
        """What makes the optimiser of a specification for a model."""
        shown = self.task.batches(1, generator=self.seeded("shown")).draw().x
        return choose(spec, model, shown, generator=self.seeded("rule"))

    def trainer(self, spec: Spec, meta: Meta) -> MetaTrainer:
        """What meta-trains a rule; batch norm of its learners keeps no statistics."""
        config = self.config
        spec = {"pretrained": False, **spec}
        model = model_for(config.model, self.task, generator=Generator())
        rule = self.maker(spec, model)
        assert isinstance(rule, Rule)
        rule.to(self.device)
        torch.manual_seed(derived_seed(config.seed, "global"))
        problems = [self.problem(meta, one) for one in meta.tasks or [config.task]]
        return trainer_of(begun(rule, meta), problems, meta, self.seeded("meta"))

    def problem(self, meta: Meta, entry: Spec) -> Problem | Distribution:
        """What learners learn, and what they are: the entry's own ``model`` and ``random``, if
        it has them."""
        config, spec = self.config, dict(entry)
        network: Spec = spec.pop("model", None) or meta.model or config.model
        random = checked_random({**meta.random, **spec.pop("random", {})})
        task = self.task if spec == config.task else task_for(spec, network, self.context)
        size = meta.batch_size or config.train.batch_size
        if not random:
            return Problem(partial(self.learner, network, task), task, size)
        return Distribution(partial(self.random_problem, network, task, size), **random)

    def random_problem(
        self,
        network: Spec,
        task: Task,
        size: int,
        *,
        model: Spec | None = None,
        batch_size: int | None = None,
        readout: float = 1.0,
        stretch: float = 1.0,
        weight: float = 1.0,
        samples: int | None = None,
    ) -> Problem:
        """A problem with what was drawn for it in the place of what all have."""
        spec = {**network, **(model or {})}

        def learner(generator: Generator) -> nn.Module:
            return quieter(self.learner(spec, task, generator), readout)

        return Problem(learner, task, batch_size or size, stretch, weight, samples)

    def learner(self, spec: Spec, task: Task, generator: Generator) -> nn.Module:
        """A network to be meta-trained on."""
        if model_name(spec) in ("resnet", "convnet"):
            spec = {"track": False, **spec}
        return model_for(spec, task, generator=generator).to(self.device)

    def seeded(self, purpose: str) -> Generator:
        return seeded(self.config.seed, purpose)

    def work(self, first: Any, then: Callable[[], Supervised]) -> Work:
        """The whole, with what it ends with."""
        if first is None:
            training = then()
            return Work(training, self.task, lambda: outcome(training))
        both = Chained(first, then, planned=first.planned)

        def ends() -> dict[str, Any]:
            assert both.second is not None
            chosen = {"lr": first.rate} if isinstance(first, Tuning) else {}
            return outcome(both.second) | chosen

        return Work(both, self.task, ends)


def outcome(training: Supervised) -> dict[str, Any]:
    """What a training ends with: its size, and its measures on the test split.

    A TARDIS is also measured as it answers from what it read alone, as ``loss_alone`` and the like,
    and from that and the input, as ``loss_without_past``.
    """
    test = training.measure("test")
    measures = {**training.task.measures, **MEASURES}
    if any(isinstance(one, TARDISCell) for one in training.model.modules()):
        # told, but not what variants are ranked by
        told = {name: what._replace(goal="none") for name, what in measures.items()}
        for ending, inputs in (("alone", False), ("without_past", True)):
            with read_alone(training.model, inputs=inputs):
                found = training.measure("test")
            test |= {f"{name}_{ending}": value for name, value in found.items()}
            measures |= {f"{name}_{ending}": what for name, what in told.items()}
    if training.plan.stop_below is not None:
        # a run that did not get there counts as long as it was tried, and `solved` says so
        test |= {"steps_to_solve": training.step, "solved": float(training.solved)}
    return {
        "parameters": sum(p.numel() for p in training.model.parameters()),
        "test": test,
        "measures": {name: [*measures[name]] for name in test if name in measures},
        **({} if training.task.leading is None else {"leading": training.task.leading}),
    }


def _pruned(config: SupervisedRun, grid: object) -> bool:
    """Whether a network is trained, pruned and trained again."""
    if config.train.prune is None:
        if config.train.rewind:
            raise InputError(
                "expected train.rewind beside train.prune, which says how much goes, but got it "
                "alone. Try train.prune=0.5."
            )
        return False
    if grid is not None or (config.meta is not None and _untrained(config.optimiser)):
        raise InputError(
            "expected train.prune beside an optimiser with a rate of its own, but got one that is "
            "tuned or meta-trained first. Try optimiser.lr=0.01."
        )
    return True


def _untrained(spec: Spec) -> bool:
    """Whether an optimiser is to be meta-trained: a learned one that no weights are named for."""
    return optimiser_entry(spec.get("name")).learned and "pretrained" not in spec


def _rates(grid: object) -> list[float]:
    if isinstance(grid, list) and grid and all(isinstance(r, int | float) and r > 0 for r in grid):
        return [float(rate) for rate in grid]
    raise InputError(
        f"expected optimiser.grid to be learning rates above zero, but got {grid!r}. "
        "Try grid = [0.001, 0.01]."
    )


def _check_compiler() -> None:
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        raise InputError(
            f"expected a C++ compiler for train.compile=true, but there is no {compiler}. "
            "Install one, or use --set train.compile=false, which is slower."
        )


KIND = Kind(SupervisedRun, build)
