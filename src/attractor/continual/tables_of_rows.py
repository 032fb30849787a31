"""What a learner measures, written where others read it."""

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

from attractor.files import write_atomic
from attractor.training.process import Row

if TYPE_CHECKING:
    from attractor.continual.learner import Callback, Learner


def to_csv(path: str | Path) -> "Callback":
    """A callback that keeps a file of comma-separated values of all that was measured.

    Args:
        path: of the file, which is written anew, whole, after each task.

    Example:
        >>> callback = to_csv("runs/mine.csv")
    """
    rows: list[Row] = []
    place = Path(path)

    def write(learner: "Learner", new: list[Row]) -> None:
        rows.extend({"step": learner.step, "task": learner.task, **row} for row in new)
        if learner.update == 0:
            names = list(dict.fromkeys(name for row in rows for name in row))
            text = io.StringIO(newline="")
            table = csv.DictWriter(text, names)
            table.writeheader()
            table.writerows(rows)
            write_atomic(place, text.getvalue())

    return write
