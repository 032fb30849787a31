"""A process that is over in a moment, and whose every number follows from its state."""

import math
from typing import Any

import torch

from attractor.state import Nested
from attractor.training.process import Diverged, Row


class Counting:
    """Adds random numbers to a total, and measures it every other step."""

    def __init__(self, steps: int = 9, *, breaks_at: int | None = None) -> None:
        self.steps, self.breaks_at = steps, breaks_at
        self.generator = torch.Generator().manual_seed(3)
        self.total = torch.zeros(2)
        self.best = math.inf
        self.step = 0

    @property
    def done(self) -> bool:
        return self.step == self.steps

    def advance(self) -> list[Row]:
        if self.step + 1 == self.breaks_at:
            raise Diverged("the total became nan", "Try less.")
        drawn = torch.randn(2, generator=self.generator)
        self.step += 1
        self.total = self.total + drawn
        self.best = min(self.best, float(drawn[0])) if self.step > 4 else self.best
        return [{"split": "train", "total": float(self.total.sum())}] if self.step % 2 else []

    def state_dict(self) -> Nested:
        return {
            "generator": self.generator.get_state(),
            "total": self.total,
            "best": self.best,
            "step": self.step,
        }

    def load_state_dict(self, state: Nested) -> None:
        self.generator.set_state(state["generator"])
        self.total, self.best, self.step = state["total"], state["best"], state["step"]

    def outcome(self) -> dict[str, Any]:
        return {"test": {"total": float(self.total.sum()), "best": self.best}}
