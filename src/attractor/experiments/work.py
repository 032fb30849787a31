"""What a run does, one step at a time, so that it can be stopped, saved and taken up again."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attractor.errors import DivergedError as DivergedError
from attractor.experiments.checkpoint import Checkpoint

Row = dict[str, Any]
"""One measurement: its split, and the measures by name."""


class StoppedError(Exception):
    """The user asked to stop; all is saved and goes on when it is started again."""


class Work(ABC):
    """One run from its start to its end.

    All that decides the steps to come is in what `save` returns: after `restore`, the same steps
    follow, with the same numbers to the bit.
    """

    step: int = 0
    """Steps done."""

    def prepare(self, out: Path, stop: Callable[[], bool]) -> None:  # noqa: B027 - most share nothing
        """Before anything else: find or make what several runs share.

        Args:
            out: the folder that holds all runs.
            stop: asked by what takes long; if it says True, save and raise `StoppedError`.
        """

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether nothing is left to do."""

    @abstractmethod
    def advance(self) -> list[Row]:
        """Do one step; what was measured. Raises `DivergedError` if it cannot."""

    @abstractmethod
    def save(self) -> Checkpoint:
        """All that decides what is to come. Raises `DivergedError` rather than keep a NaN."""

    @abstractmethod
    def restore(self, saved: Checkpoint) -> None:
        """Go on where `save` was."""

    @abstractmethod
    def outcome(self) -> dict[str, Any]:
        """What the run ends with: ``parameters``, and under ``test`` its measures."""
