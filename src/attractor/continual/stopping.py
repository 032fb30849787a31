"""When a task has been learnt for long enough."""

import math
from typing import Any

from torch import nn

from attractor.checks import whole
from attractor.errors import InputError
from attractor.tasks import StoredTask
from attractor.training.evaluate import evaluate


class Patience:
    """End a task early, once its validation loss has not improved for a while.

    Args:
        patience: measurements without an improvement after which a task ends; ``None`` means never.
        every: updates between measurements.

    Example:
        >>> waits = Patience(2, every=10)
        >>> [waits.tired(loss) for loss in (3.0, 2.0, 2.5, 1.9, 1.9, 2.0)]
        [False, False, False, False, False, True]
    """

    def __init__(self, patience: int | None, *, every: int | None) -> None:
        if patience is not None and every is None:
            raise InputError(
                "expected eval_every beside patience, the updates between measurements of the "
                "validation loss, but got none. Try eval_every=50."
            )
        self.patience = None if patience is None else whole("patience", patience, 1)
        self.every = None if every is None else whole("eval_every", every, 1)
        if self.patience is None and self.every is not None:
            raise InputError(
                "expected patience beside eval_every, but got none: nothing would be done with "
                "what is measured. Try patience=3, or evaluate_every for a learning curve."
            )
        self.start()

    def start(self) -> None:
        """A new task: forget what was measured."""
        self.best, self.waited = math.inf, 0

    def enough(self, model: nn.Module, task: StoredTask, update: int) -> bool:
        """Whether the task has been learnt for long enough after so many updates."""
        if self.every is None or update % self.every:
            return False
        return self.tired(evaluate(model, task, "valid", 1000)["loss"])

    def tired(self, loss: float) -> bool:
        """Take note of a loss; whether the last few were no better than the best before."""
        self.waited = 0 if loss < self.best else self.waited + 1
        self.best = min(self.best, loss)
        return self.patience is not None and self.waited >= self.patience

    def state_dict(self) -> dict[str, Any]:
        """The best loss of the present task, and how long ago it was."""
        return {"best": self.best, "waited": self.waited}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where another was."""
        self.best, self.waited = state["best"], state["waited"]
