"""What comes before an optimiser can be used: meta-training, or the choice of a learning rate."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torch import Generator, Tensor
from torch.optim import Optimizer

from attractor.experiments.checkpoint import Checkpoint
from attractor.experiments.learned_config import MetaConfig
from attractor.experiments.learning import Learning
from attractor.experiments.work import DivergedError, Row
from attractor.meta import MetaTrainer, PESTrainer, Problem
from attractor.meta.settings import bounds
from attractor.optimisers import Rule

Factory = Callable[[Iterable[Any]], Optimizer]
"""Makes an optimiser for parameters."""


class Preparation(ABC):
    """What is done, step by step, before the learner's first update."""

    planned: int = 0
    """Steps, at most."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether the optimiser is ready."""

    @abstractmethod
    def advance(self) -> list[Row]:
        """Do one step; what was measured."""

    @abstractmethod
    def optimiser(self) -> Factory:
        """What makes the optimiser, once it is ready."""

    @abstractmethod
    def save(self) -> Checkpoint:
        """All that decides what is to come."""

    @abstractmethod
    def restore(self, saved: Checkpoint) -> None:
        """Go on where `save` was."""


class Nothing(Preparation):
    """For an optimiser that is ready as it is."""

    def __init__(self, factory: Factory) -> None:
        self.factory = factory

    @property
    def done(self) -> bool:
        return True

    def advance(self) -> list[Row]:
        raise AssertionError

    def optimiser(self) -> Factory:
        return self.factory

    def save(self) -> Checkpoint:
        return Checkpoint({}, {})

    def restore(self, saved: Checkpoint) -> None:
        pass


class MetaTraining(Preparation):
    """One update of a rule at a time."""

    def __init__(
        self, rule: Rule, problems: Sequence[Problem], config: MetaConfig, generator: Generator
    ) -> None:
        self.rule = rule
        steps = config.steps if isinstance(config.steps, int) else bounds(config.steps)
        shared: dict[str, Any] = {"unroll": config.unroll, "lr": config.lr, "steps": steps}
        self.trainer: MetaTrainer | PESTrainer
        shared["objective"] = config.objective
        if config.method == "pes":
            self.trainer = PESTrainer(
                rule,
                problems,
                updates=config.updates,
                pairs=config.together,
                sigma=config.sigma,
                generator=generator,
                **shared,
            )
        else:
            self.trainer = MetaTrainer(
                rule,
                problems,
                learners=config.learners,
                together=config.together,
                order=config.order,
                perturb=config.perturb,
                generator=generator,
                **shared,
            )
        self.planned = self.trainer.planned

    @property
    def done(self) -> bool:
        return self.trainer.done

    def advance(self) -> list[Row]:
        return self.trainer.advance()

    def optimiser(self) -> Factory:
        return self.rule

    def save(self) -> Checkpoint:
        tensors: dict[str, Tensor] = {}
        return Checkpoint(tensors, _without_tensors(self.trainer.state_dict(), tensors))

    def restore(self, saved: Checkpoint) -> None:
        self.trainer.load_state_dict(_with_tensors(saved.values, saved.tensors))


def _without_tensors(nested: Any, tensors: dict[str, Tensor], path: str = "") -> Any:
    """The plain part of a nested state; its tensors go, by their paths, to a dictionary."""
    match nested:
        case Tensor():
            tensors[path] = nested
            return {"tensor": path}
        case dict():
            return {k: _without_tensors(v, tensors, f"{path}/{k}") for k, v in nested.items()}
        case list():
            return [_without_tensors(v, tensors, f"{path}/{i}") for i, v in enumerate(nested)]
        case _:
            return nested


def _with_tensors(plain: Any, tensors: dict[str, Tensor]) -> Any:
    match plain:
        case {"tensor": str(path)}:
            return tensors[path]
        case dict():
            return {k: _with_tensors(v, tensors) for k, v in plain.items()}
        case list():
            return [_with_tensors(v, tensors) for v in plain]
        case _:
            return plain


class Tuning(Preparation):
    """One learner for each rate of a grid; the best on validation data gives the rate.

    Args:
        grid: the rates.
        learning: a fresh learner with an optimiser of a rate, the same but for it.
        factory: makes the optimiser with a rate.
    """

    def __init__(
        self,
        grid: Sequence[float],
        learning: Callable[[Factory], Learning],
        factory: Callable[[float], Factory],
    ) -> None:
        self.grid, self.learning, self.factory = list(grid), learning, factory
        self.losses: list[float] = []
        self.current = self._next()
        self.planned = len(self.grid) * self.current.settings.steps

    @property
    def done(self) -> bool:
        return len(self.losses) == len(self.grid)

    def advance(self) -> list[Row]:
        try:
            self.current.advance()
            if not self.current.done:
                return []
            loss = self.current.measure("valid")["loss"]
        except DivergedError:
            loss = math.inf
        rate = self.grid[len(self.losses)]
        self.losses.append(loss if math.isfinite(loss) else math.inf)
        if not self.done:
            self.current = self._next()
        return [{"split": "tuning", "lr": rate, "loss": loss}] if math.isfinite(loss) else []

    def optimiser(self) -> Factory:
        return self.factory(self.rate)

    @property
    def rate(self) -> float:
        """The best rate so far."""
        return self.grid[self.losses.index(min(self.losses))]

    def save(self) -> Checkpoint:
        saved = self.current.save()
        # JSON has no infinity
        losses = [None if math.isinf(loss) else loss for loss in self.losses]
        return saved._replace(values={"current": saved.values, "losses": losses})

    def restore(self, saved: Checkpoint) -> None:
        self.losses = [math.inf if loss is None else loss for loss in saved.values["losses"]]
        if not self.done:
            self.current = self._next()
            self.current.restore(saved._replace(values=saved.values["current"]))

    def _next(self) -> Learning:
        return self.learning(self.factory(self.grid[len(self.losses)]))
