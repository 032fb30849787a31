"""What a process of the user's own measures, put into a sink as it comes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from attractor.runs.folder import locked
from attractor.tracking.base import About, flat, points
from attractor.tracking.live import sink_named
from attractor.tracking.place import begin
from attractor.training.process import Row


class Stepping(Protocol):
    """Whatever counts its steps."""

    @property
    def step(self) -> int: ...


class Tracker:
    """Puts the rows of one process into a sink: a callback of `Learner`, or ``on_rows`` of `fit`.

    Args:
        sink: a key of `SINKS`: ``"csv"``, ``"tensorboard"``, ``"mlflow"`` or ``"wandb"``.
        out: the folder of the sink; what it had of a run of that name is replaced.
        name: of the run.
        settings: what the sink is told of it; may be nested.
        group: what the run belongs to: its folder is that of its name below that of its group.

    Example:
        >>> import tempfile, torch
        >>> from attractor.training import fit
        >>> x = torch.randn(64, 3)
        >>> with tempfile.TemporaryDirectory() as out:
        ...     with Tracker("csv", out, "sums", {"lr": 0.1}) as tracker:
        ...         _ = fit(torch.nn.Linear(3, 1), (x, x[:, :1]), steps=10, on_rows=tracker.add)
        ...     lines = Path(out, "own", "sums", "metrics.csv").read_text().splitlines()
        >>> lines[0], [line.split(",")[:2] for line in lines[1:]]
        ('name,step,value', [['train/loss', '10'], ['train/gradient_norm', '10']])
    """

    def __init__(
        self,
        sink: str,
        out: str | Path,
        name: str,
        settings: Mapping[str, Any] | None = None,
        *,
        group: str = "own",
    ) -> None:
        about = About(group, name, flat(settings or {}))
        known = sink_named(sink)
        place = about.place(Path(out))
        self._hold = locked(place, wait=False)
        self._hold.__enter__()
        begin(place, fresh=True)
        self.writer = known.open(about, Path(out), True)

    def __call__(self, process: Stepping, rows: Sequence[Row]) -> None:
        """Take rows that a process measured at the step where it is."""
        self.add([{"step": process.step, **row} for row in rows])

    def add(self, rows: Sequence[Row]) -> None:
        """Take rows that have a step and a split."""
        self.writer.add([point for row in rows for point in points(row)])

    def close(self) -> None:
        """No more will come."""
        self.writer.close()
        self._hold.__exit__(None, None, None)

    def __enter__(self) -> "Tracker":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
