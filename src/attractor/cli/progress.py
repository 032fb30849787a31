"""Live progress of runs, read from their folders: bars and tables on a terminal, lines else."""

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from attractor.cli.levels import Board
from attractor.cli.text import visible
from attractor.experiments.config import RunConfig
from attractor.results.numbers import duration
from attractor.runs.jobs import Ended

BETWEEN_LOOKS = 0.25
BETWEEN_LINES = 10.0


class _Shown(Progress):
    """Bars, and below them the table of those runs that learn levels."""

    def __init__(self, board: Board, *columns: ProgressColumn, **options: Any) -> None:
        self.board = board
        super().__init__(*columns, **options)

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        if self.board.standings:
            yield self.board.table()


class Watch:
    """Shows runs on stderr while they go on, in whichever process that is."""

    def __init__(self, configs: Sequence[RunConfig], out: Path, *, quiet: bool) -> None:
        self.total = len(configs)
        self.open = {config.id: config for config in configs}
        self.out = out
        self.quiet = quiet
        self.finished = 0
        self.endings = Counter[str]()
        self.bars: dict[str, Any] = {}
        self.seen: dict[str, tuple[int, float]] = {}
        """By run, the first step that was seen of it, and when."""
        self.begun: tuple[int, float] | None = None
        """How many had ended when the first run was seen at work, and when that was."""
        self.console = Console(stderr=True)
        self.live = self.console.is_terminal and not quiet
        self.board = Board(configs, out)
        self.progress = _Shown(
            self.board,
            *_columns(),
            console=self.console,
            disable=not self.live,
        )
        self.ending = threading.Event()
        self.drawing = threading.Lock()
        self.thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "Watch":
        if not self.quiet:
            self.console.print(
                f"{self.total} {'run' if self.total == 1 else 'runs'} in {visible(self.out)}",
                highlight=False,
                markup=False,
            )
        self.all = self.progress.add_task("all runs", total=self.total, note="")
        self.progress.start()
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self.thread.join()
        self.progress.stop()

    def end(self, ended: Ended[RunConfig]) -> None:
        """Take note that a run ended."""
        # one that was stopped before its end, or never begun, is not finished
        self.finished += ended.how != "stopped"
        self.endings[ended.how] += 1
        with self.drawing:
            self.board.end(ended.config, ended.how)
            self.open.pop(ended.config.id, None)
            bar = self.bars.pop(ended.config.id, None)
            if bar is not None:
                self.progress.remove_task(bar)
        self.progress.update(self.all, completed=self.finished, note=self._counts())
        if not (self.live or self.quiet):
            name = named(ended.config)
            print(f"[{self.finished}/{self.total}] {name}: {ended.how}", file=sys.stderr)

    def _counts(self) -> str:
        """How many runs are under way, and how many ended badly."""
        return _told({"running": len(self.bars), **self.endings})

    def _look(self) -> None:
        next_line = time.monotonic() + BETWEEN_LINES
        while not self.ending.wait(BETWEEN_LOOKS):
            going = {key: row for key in list(self.open) if (row := self._last_row(key))}
            if going and self.begun is None:
                self.begun = (self.finished, time.monotonic())
            if self.live:
                with self.drawing:
                    self._draw(going)
            elif not self.quiet and time.monotonic() > next_line:
                next_line += BETWEEN_LINES
                for key, row in going.items():
                    print(self._line(key, row), file=sys.stderr)
                if self.total > 1:
                    print(self._whole(len(going)), file=sys.stderr)

    def _whole(self, running: int) -> str:
        """All runs in one line; time left is by those that ended since the first was at work."""
        told = [f"all runs: {self.endings['done']} of {self.total} done"]
        told += filter(None, [_told({"running": running, **self.endings})])
        left = ""
        if self.begun is not None:
            before, since = self.begun
            rest = self.total - self.finished
            left = time_left(self.finished - before, rest, time.monotonic() - since)
        return ", ".join(told) + left

    def _draw(self, going: dict[str, dict[str, Any]]) -> None:
        self.board.look()
        for key, row in going.items():
            config = self.open.get(key)
            if config is None or key in self.board.standings:
                continue
            if key not in self.bars:
                name = named(config)
                self.bars[key] = self.progress.add_task(name, total=config.total, note="")
            done = max(0, row["step"])
            self.progress.update(self.bars[key], completed=done, note=_note(row))

    def _line(self, key: str, row: dict[str, Any]) -> str:
        config = self.open.get(key)
        if config is None:
            return ""
        done = max(0, row["step"])
        total = "?" if config.total is None else config.total
        first, since = self.seen.setdefault(key, (row["step"], time.monotonic()))
        left = ""
        if config.total is not None:
            went = time.monotonic() - since
            left = time_left(row["step"] - first, config.total - row["step"], went)
        return f"{named(config)}: step {done}/{total}, {_note(row)}{left}"

    def _last_row(self, key: str) -> dict[str, Any] | None:
        """The last whole line with a loss that a run has written."""
        config = self.open.get(key)
        if config is None:
            return None
        try:
            with open(self.out / config.experiment / key / "metrics.jsonl", "rb") as file:
                file.seek(max(0, file.seek(0, 2) - 4096))
                lines = file.read().split(b"\n")
            last = next(line for line in reversed(lines[:-1]) if b'"loss"' in line)
            row: dict[str, Any] = json.loads(last)
        except (OSError, StopIteration, ValueError):
            return None
        return row


def _told(counts: dict[str, int]) -> str:
    return ", ".join(f"{n} {what}" for what, n in counts.items() if n and what != "done")


def _note(row: dict[str, Any]) -> str:
    ahead = f"{-row['step']} steps of preparation left, " if row["step"] < 0 else ""
    level = f"level {row['level']}, " if "level" in row else ""
    return f"{ahead}{level}loss {row['loss']:.4f}"


def time_left(done: int, left: int, seconds: float) -> str:
    """How long the rest will take if it goes on as it did; nothing where none can tell.

    Example:
        >>> time_left(100, 300, 20.0)
        ', about 1 min 00 s left'
    """
    if done <= 0 or left <= 0:
        return ""
    return f", about {duration(seconds * left / done)} left"


def named(config: RunConfig) -> str:
    """A run as a line or a bar names it."""
    return visible(f"{config.label}, seed {config.seed}")


def _columns() -> list[ProgressColumn]:
    """Name, bar, count, time gone, time left and a note; brackets in names are no markup."""
    return [
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    ]


@contextmanager
def counted(
    name: str,
    what: str,
    *,
    quiet: bool,
    note: Callable[[Any], str] = lambda row: f"loss {row['loss']:.4f}",
) -> Iterator[Callable[[int, int, Any], None]]:
    """Shows one thing that is done step by step: a function of step, total and what to note."""
    console = Console(stderr=True)
    live = console.is_terminal and not quiet
    name = visible(name)
    with Progress(*_columns(), console=console, disable=not live) as progress:
        bar = progress.add_task(name, total=None, note="")
        last = started = time.monotonic()
        first: int | None = None

        def show(step: int, total: int, row: Any) -> None:
            nonlocal last, first
            first = step if first is None else first
            progress.update(bar, completed=step, total=total, note=note(row))
            if not (live or quiet) and time.monotonic() > last + BETWEEN_LINES:
                last = time.monotonic()
                left = time_left(step - first, total - step, last - started)
                said = f"{name}: {what} {step}/{total}, {note(row)}{left}"
                print(said, file=sys.stderr)

        yield show
