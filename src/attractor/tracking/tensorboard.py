"""Points as event files that TensorBoard reads, in double precision."""

import json
from collections.abc import Sequence
from pathlib import Path

from attractor.tracking.base import About, Point


class TensorBoardWriter:
    """The event file of a run in a folder of its own; its settings are a text."""

    def __init__(self, about: About, root: Path, fresh: bool) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(about.place(root))
        if fresh:
            settings = json.dumps(dict(about.settings), indent=1)
            # four spaces make it a block of code, which the page shows as it is
            self.writer.add_text("settings", "".join(f"    {s}\n" for s in settings.splitlines()))
            self.writer.flush()

    def add(self, points: Sequence[Point]) -> None:
        for point in points:
            self.writer.add_scalar(*_named(point), new_style=True, double_precision=True)
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()


def _named(point: Point) -> tuple[str, float, int]:
    return point.name, point.value, point.step
