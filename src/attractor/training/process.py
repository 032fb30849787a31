"""The contract of whatever advances in steps and can be stopped, saved and taken up again."""

from collections.abc import Callable
from typing import Any, Protocol

from attractor.errors import RunError
from attractor.state import Nested

Row = dict[str, Any]
"""One measurement: its split, and the measures by name."""


class Process(Protocol):
    """Something that goes on step by step from its start to its end.

    All that decides the steps to come is in `state_dict`: a process that is made alike and given
    that state takes the same steps, with the same numbers to the bit.

    Example:
        >>> class Halving:
        ...     def __init__(self, start: float) -> None:
        ...         self.value, self.step = start, 0
        ...
        ...     @property
        ...     def done(self) -> bool:
        ...         return self.step == 3
        ...
        ...     def advance(self) -> list[Row]:
        ...         self.value, self.step = self.value / 2, self.step + 1
        ...         return [{"split": "train", "value": self.value}]
        ...
        ...     def state_dict(self) -> Nested:
        ...         return {"value": self.value, "step": self.step}
        ...
        ...     def load_state_dict(self, state: Nested) -> None:
        ...         self.value, self.step = state["value"], state["step"]
        >>> process: Process = Halving(8.0)
        >>> while not process.done:
        ...     rows = process.advance()
        >>> process.step, rows
        (3, [{'split': 'train', 'value': 1.0}])
    """

    @property
    def step(self) -> int:
        """Where it is; negative while something that it contains comes first."""
        ...

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        ...

    def advance(self) -> list[Row]:
        """Take one step; what was measured. Raises `Diverged` if it cannot."""
        ...

    def state_dict(self) -> Nested:
        """All that decides what is to come. Raises `Diverged` rather than keep a NaN."""
        ...

    def load_state_dict(self, state: Nested) -> None:
        """Go on where `state_dict` was taken."""
        ...


def finish(
    process: Process, *, on_rows: Callable[[list[Row]], None] = lambda rows: None
) -> list[Row]:
    """Advance a process to its end.

    Args:
        process: wherever it is.
        on_rows: told of what is measured, as soon as it is.

    Returns:
        All that was measured, each with the step after which it was.

    Example:
        >>> import torch
        >>> from attractor.models import MLP
        >>> from attractor.tasks import Digits
        >>> from attractor.training import Plan, Supervised
        >>> model, g = MLP([64, 32, 10]), torch.Generator().manual_seed(0)
        >>> sgd = torch.optim.SGD(model.parameters(), 0.1)
        >>> training = Supervised(model, Digits(order="flat"), sgd, Plan(20), generator=g)
        >>> [row["step"] for row in finish(training)]
        [10, 20]
    """
    rows: list[Row] = []
    while not process.done:
        new = process.advance()
        if new:
            new = [{"step": process.step, **row} for row in new]
            rows += new
            on_rows(new)
    return rows


class Stopped(Exception):  # noqa: N818 - an answer to the user's wish, not an error
    """The user asked to stop; all is saved and goes on when it is started again."""


class Diverged(RunError):  # noqa: N818 - what became of the numbers
    """The numbers of a training are no longer finite, or finite and absurd.

    Args:
        reason: what became of which, without a full stop.
        advice: what to try, in a sentence.
    """

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(f"{reason}. {advice}")
        self.reason, self.advice = reason, advice
