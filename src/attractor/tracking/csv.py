"""Points as a file of comma-separated values: ``name,step,value``, one line each."""

import csv
from collections.abc import Sequence
from pathlib import Path

from attractor.files import explained
from attractor.tracking.base import About, Point


class CSVWriter:
    """Lines of ``metrics.csv`` in the folder of a run."""

    def __init__(self, about: About, root: Path, fresh: bool) -> None:
        path = about.place(root) / "metrics.csv"
        with explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self.file = open(path, "w" if fresh else "a", newline="", encoding="utf-8")  # noqa: SIM115 - closed by `close`
        self.table = csv.writer(self.file)
        if fresh:
            self.table.writerow(Point._fields)
            self.file.flush()

    def add(self, points: Sequence[Point]) -> None:
        self.table.writerows(points)
        self.file.flush()

    def close(self) -> None:
        self.file.close()
