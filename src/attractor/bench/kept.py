"""What was measured so far, so that a benchmark that was stopped goes on."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from attractor.files import write_atomic

T = TypeVar("T")


class Kept(Generic[T]):
    """Measurements in a file that is whole at every moment.

    Args:
        path: the file, or None to keep them for the life of this object alone.
        key: under what they were made; those of another key are not taken up.
        row: turns a measurement into what JSON can hold.
        read: turns that back into a measurement.
    """

    def __init__(
        self,
        path: Path | None,
        key: Mapping[str, Any],
        row: Callable[[T], dict[str, Any]],
        read: Callable[[dict[str, Any]], T],
    ) -> None:
        self.path, self.key, self.row = path, dict(key), row
        self.found: list[T] = []
        try:
            text = "" if path is None else path.read_text(encoding="utf-8")
            whole = json.loads(text)
            if whole["key"] == self.key:
                self.found = [read(one) for one in whole["trials"]]
        except (OSError, KeyError, TypeError, ValueError):
            pass  # none, or nothing that could be read: it is measured anew

    def add(self, one: T) -> None:
        """Take up one more, and write them all."""
        self.found.append(one)
        if self.path is not None:
            rows = [self.row(each) for each in self.found]
            text = json.dumps({"key": self.key, "trials": rows}, indent=1)
            write_atomic(self.path, text, lasting=False)

    def forget(self) -> None:
        """Remove the file."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
