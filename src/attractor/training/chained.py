"""One process after another: what makes ready comes first, and what is made ready follows."""

from collections.abc import Callable
from typing import Generic, TypeVar

from attractor.state import Nested
from attractor.training.process import Process, Row

P = TypeVar("P", bound=Process)


class Chained(Generic[P]):
    """A process that contains two: the second is made from what the first came to.

    The second starts at step 0, so that those that follow different first ones can be compared step
    by step; the first has the steps before.

    Args:
        first: meta-training or tuning, say.
        then: makes the second; called once the first is done.
        planned: the steps of the first, at most.
    """

    def __init__(self, first: Process, then: Callable[[], P], *, planned: int) -> None:
        self.first, self.then = first, then
        self.step = -planned
        self.second: P | None = None

    @property
    def done(self) -> bool:
        return self.second is not None and self.second.done

    def advance(self) -> list[Row]:
        if not self.first.done:
            rows = self.first.advance()
            self.step = 0 if self.first.done else self.step + 1
            return rows
        if self.second is None:
            self.second = self.then()
        rows = self.second.advance()
        self.step = self.second.step
        return rows

    def state_dict(self) -> Nested:
        second = None if self.second is None else self.second.state_dict()
        return {"step": self.step, "first": self.first.state_dict(), "second": second}

    def load_state_dict(self, state: Nested) -> None:
        self.first.load_state_dict(state["first"])
        self.step = state["step"]
        if state["second"] is not None:
            self.second = self.then()
            self.second.load_state_dict(state["second"])
