"""How far learners of levels have come, as a table that is drawn while they run."""

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from attractor.cli.text import visible
from attractor.experiments.config import RunConfig
from attractor.experiments.naming import Names
from attractor.results.numbers import duration
from attractor.runs.folder import LOG_FILE


@dataclass
class Standing:
    """Where one learner is, read from its log as far as that has been written."""

    config: Any
    path: Path
    place: int = 0
    """How much of the log has been read."""
    level: int | None = None
    completed: int = 0
    accuracy: float | None = None
    failures: int = 0
    began: float | None = None
    ended: str = ""
    seconds: float = 0.0

    @property
    def units(self) -> int | None:
        """Of the network as it is now: it has grown after each failure but a last one."""
        to: int | None = self.config.train.grow_to
        start: int | None = self.config.model.get("hidden_size")
        grown = 0 if to is None else min(self.failures, self.config.train.growths)
        return start if to is None or not grown else to << (grown - 1)

    def read(self, now: float) -> None:
        """Take note of what has been written since."""
        try:
            with open(self.path, "rb") as file:
                if file.seek(0, 2) < self.place:  # it goes on from a checkpoint, which is earlier
                    self._forget()
                file.seek(self.place)
                lines = file.read()
        except OSError:
            return
        if self.began is None:
            self.began = now
        whole = lines[: lines.rfind(b"\n") + 1]
        self.place += len(whole)
        for line in whole.splitlines():
            with suppress(ValueError):  # a damaged line is for those to tell who need it
                self._note(json.loads(line))
        self.seconds = now - self.began

    def _forget(self) -> None:
        self.place = self.completed = self.failures = 0
        self.level = self.accuracy = None

    def _note(self, row: dict[str, Any]) -> None:
        self.level = row.get("level", self.level)
        if "passed" in row:
            self.accuracy = row["current_accuracy"]
            self.completed += row["passed"] > 0
            self.failures += row["passed"] == 0


class Board:
    """One row for each learner of levels: its level, what it had on the last, units and time.

    Args:
        configs: the runs; those of other kinds are left out.
        out: the folder that holds all runs.
    """

    def __init__(self, configs: Sequence[RunConfig], out: Path) -> None:
        self.names = Names.of(configs)
        self.standings = {
            config.id: Standing(config, out / config.experiment / config.id / LOG_FILE)
            for config in configs
            if config.kind == "lifelong"
        }

    def look(self) -> None:
        """Read what the runs that go on have written."""
        for one in self.standings.values():
            if not one.ended:
                one.read(time.monotonic())

    def end(self, config: RunConfig, how: str) -> None:
        """Take note that a run ended."""
        if one := self.standings.get(config.id):
            one.read(time.monotonic())
            one.ended = how

    def table(self) -> Table:
        """The table as it is now."""
        table = Table(box=None, pad_edge=False)
        table.add_column("model")
        for name in ("seed", "level", "completed", "accuracy", "units", "time"):
            table.add_column(name, justify="right")
        table.add_column("")
        for one in self.standings.values():
            seen = one.began is not None
            table.add_row(
                Text(visible(self.names.variant(one.config))),  # brackets in it are no markup
                str(one.config.seed),
                "" if one.level is None else str(one.level),
                str(one.completed) if seen else "",
                "" if one.accuracy is None else f"{one.accuracy:.3f}",
                str(one.units or "") if seen else "",
                duration(one.seconds) if seen else "",
                one.ended or ("" if seen else "waits"),
            )
        return table
