"""The process of a run, with what it learns from and what it ends with."""

from collections.abc import Callable
from typing import Any

from attractor.state import Nested
from attractor.training.process import Process, Row


class Work:
    """A process as a kind of experiment builds it.

    Args:
        process: what goes on step by step.
        data: what it learns from: a task or a stream.
        outcome: what the run ends with: ``parameters``, under ``test`` its measures, and under
            ``measures`` what each of them is.
    """

    def __init__(
        self, process: Process, data: object, outcome: Callable[[], dict[str, Any]]
    ) -> None:
        self.process, self.data, self.outcome = process, data, outcome

    @property
    def step(self) -> int:
        return self.process.step

    @property
    def done(self) -> bool:
        return self.process.done

    def advance(self) -> list[Row]:
        return self.process.advance()

    def state_dict(self) -> Nested:
        return self.process.state_dict()

    def load_state_dict(self, state: Nested) -> None:
        self.process.load_state_dict(state)
