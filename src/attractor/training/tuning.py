"""Choosing a learning rate by validation data, before anything is measured."""

import math
from collections.abc import Callable, Sequence

from attractor.state import Nested
from attractor.training.process import Diverged, Row
from attractor.training.supervised import Supervised


class Tuning:
    """A fresh training for each rate of a grid; the lowest validation loss gives the rate.

    A rate at which training diverges counts as infinitely bad.

    Args:
        grid: the rates.
        training: makes a training with a rate, all alike but for it.

    Example:
        >>> import torch
        >>> from attractor.tasks import Digits
        >>> from attractor.training import Plan
        >>> def training(lr: float) -> Supervised:
        ...     model = torch.nn.Linear(64, 10)
        ...     sgd = torch.optim.SGD(model.parameters(), lr)
        ...     g = torch.Generator().manual_seed(0)
        ...     return Supervised(model, Digits(order="flat"), sgd, Plan(20), generator=g)
        >>> tuning = Tuning([1e-5, 0.5], training)
        >>> while not tuning.done:
        ...     rows = tuning.advance()
        >>> tuning.rate
        0.5
    """

    def __init__(self, grid: Sequence[float], training: Callable[[float], Supervised]) -> None:
        self.grid, self.training = list(grid), training
        self.losses: list[float] = []
        self.step = 0
        self.current = self._next()
        self.planned = len(self.grid) * self.current.plan.steps

    @property
    def done(self) -> bool:
        return len(self.losses) == len(self.grid)

    @property
    def rate(self) -> float:
        """The best rate so far."""
        return self.grid[self.losses.index(min(self.losses))]

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

    def state_dict(self) -> Nested:
        now = None if self.done else self.current.state_dict()
        return {"step": self.step, "losses": list(self.losses), "current": now}

    def load_state_dict(self, state: Nested) -> None:
        self.step, self.losses = state["step"], list(state["losses"])
        if not self.done:
            self.current = self._next()
            self.current.load_state_dict(state["current"])

    def _next(self) -> Supervised:
        return self.training(self.grid[len(self.losses)])
