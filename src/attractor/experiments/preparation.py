"""What comes before an optimiser can be used: meta-training, or the choice of a learning rate."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import torch
from torch import Generator
from torch.optim import Optimizer

from attractor.errors import RunError
from attractor.experiments.learned_config import MetaConfig
from attractor.experiments.learning import Learning
from attractor.meta import MetaTrainer, PESTrainer, Problem
from attractor.meta.settings import bounds
from attractor.optimisers import Rule
from attractor.state import Nested
from attractor.training.process import Diverged, Process, Row

Factory = Callable[[Iterable[Any]], Optimizer]
"""Makes an optimiser for parameters."""


class Preparation(Process, Protocol):
    """What is done, step by step, before the learner's first update."""

    planned: int
    """Steps, at most."""

    def optimiser(self) -> Factory:
        """What makes the optimiser, once it is ready."""
        ...


class Nothing:
    """For an optimiser that is ready as it is."""

    step = planned = 0

    def __init__(self, factory: Factory) -> None:
        self.factory = factory

    @property
    def done(self) -> bool:
        return True

    def advance(self) -> list[Row]:
        raise AssertionError

    def optimiser(self) -> Factory:
        return self.factory

    def state_dict(self) -> Nested:
        return None

    def load_state_dict(self, state: Nested) -> None:
        pass


class MetaTraining:
    """One update of a rule at a time."""

    def __init__(
        self, rule: Rule, problems: Sequence[Problem], config: MetaConfig, generator: Generator
    ) -> None:
        self.rule, self.step = rule, 0
        steps = config.steps if isinstance(config.steps, int) else bounds(config.steps)
        shared: dict[str, Any] = {"unroll": config.unroll, "lr": config.lr, "steps": steps}
        self.trainer: MetaTrainer | PESTrainer
        if config.method == "pes":
            self.planned = config.updates
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
            longest = max(bounds(steps))
            rounds = -(-config.learners // config.together)
            self.planned = rounds * -(-longest // config.unroll)
            self.trainer = MetaTrainer(
                rule,
                problems,
                learners=config.learners,
                together=config.together,
                order=config.order,
                objective=config.objective,
                perturb=config.perturb,
                generator=generator,
                **shared,
            )

    @property
    def done(self) -> bool:
        return self.trainer.done

    def advance(self) -> list[Row]:
        try:
            progress = self.trainer.advance()
        except RunError as error:
            raise Diverged(str(error).rstrip("."), "Nothing was tested.") from error
        self.step += 1
        found = {"loss": progress.loss, "last": progress.last}
        # learners that were given up have no loss
        return [{"split": "meta", **found}] if all(map(math.isfinite, found.values())) else []

    def optimiser(self) -> Factory:
        return self.rule

    def state_dict(self) -> Nested:
        # torch's own generator is that of dropout, which takes no other
        return {
            "trainer": self.trainer.state_dict(),
            "random": torch.get_rng_state(),
            "step": self.step,
        }

    def load_state_dict(self, state: Nested) -> None:
        self.trainer.load_state_dict(state["trainer"])
        torch.set_rng_state(state["random"])
        self.step = state["step"]


class Tuning:
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
        self.step = 0
        self.current = self._next()
        self.planned = len(self.grid) * self.current.settings.steps

    @property
    def done(self) -> bool:
        return len(self.losses) == len(self.grid)

    def advance(self) -> list[Row]:
        self.step += 1
        try:
            self.current.advance()
            if not self.current.done:
                return []
            loss = self.current.measure("valid")["loss"]
        except Diverged:
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

    def state_dict(self) -> Nested:
        current = None if self.done else self.current.state_dict()
        return {"losses": list(self.losses), "current": current, "step": self.step}

    def load_state_dict(self, state: Nested) -> None:
        self.losses, self.step = state["losses"], state["step"]
        if not self.done:
            self.current = self._next()
            self.current.load_state_dict(state["current"])

    def _next(self) -> Learning:
        return self.learning(self.factory(self.grid[len(self.losses)]))
