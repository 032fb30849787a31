"""Live progress of runs, read from their folders: bars and tables on a terminal, lines else."""

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

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
from attractor.cli.pace import Pace, rest, time_left
from attractor.cli.text import visible
from attractor.experiments.config import RunConfig
from attractor.results.numbers import plural
from attractor.runs.folder import LOG_FILE
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


class Followed(NamedTuple):
    """What is followed as one thing: a run, or the runs of a trial, one after another.

    Args:
        name: as a line or a bar has it.
        logs: of its runs.
        steps: of each run; ``None`` where only the data can tell.
    """

    name: str
    logs: tuple[Path, ...]
    steps: int | None

    @property
    def total(self) -> int | None:
        return None if self.steps is None else self.steps * len(self.logs)

    def last_row(self) -> dict[str, Any] | None:
        """The last whole line with a loss of the last run that has one; its step is of all runs."""
        rows = [row for log in self.logs if (row := _last_row(log))]
        return {**rows[-1], "step": sum(row["step"] for row in rows)} if rows else None


class Watch:
    """Shows runs on stderr while they go on, in whichever process that is.

    Args:
        configs: the runs; none for a search, whose runs are found on the way.
        out: the folder that holds all runs.
        quiet: show nothing.
        trials: of a search.
        find: finds the trials that are under way now.
    """

    def __init__(
        self,
        configs: Sequence[RunConfig],
        out: Path,
        *,
        quiet: bool,
        trials: int | None = None,
        find: Callable[[], Mapping[str, Followed]] | None = None,
    ) -> None:
        self.what = "run" if trials is None else "trial"
        self.total = len(configs) if trials is None else trials
        self.find = find
        self.board = Board(configs, out)
        self.names = self.board.names
        self.open: Mapping[str, Followed] = {
            config.id: Followed(
                visible(self.names(config)),
                (out / config.experiment / config.id / LOG_FILE,),
                config.total,
            )
            for config in configs
        }
        self.before = {key: _written(one.logs) for key, one in self.open.items()}
        """When the logs of runs that are to go on were written last, before this began."""
        self.out = out
        self.quiet = quiet
        self.finished = 0
        self.endings = Counter[str]()
        self.bars: dict[str, Any] = {}
        self.pace = Pace()
        self.console = Console(stderr=True)
        self.live = self.console.is_terminal and not quiet
        self.progress = _Shown(
            self.board,
            *_columns(),
            console=self.console,
            disable=not self.live,
        )
        self.all = self.progress.add_task(f"all {self.what}s", total=self.total, note="")
        self.ending = threading.Event()
        self.drawing = threading.Lock()
        self.thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "Watch":
        if not self.quiet:
            self.console.print(
                f"{plural(self.total, self.what)} in {visible(self.out)}",
                highlight=False,
                markup=False,
            )
        self.progress.start()
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self.thread.join()
        self.progress.stop()

    def end(self, ended: Ended[RunConfig]) -> None:
        """Take note that a run ended."""
        with self.drawing:
            self.board.end(ended.config, ended.how)
        self.close(ended.config.id, self.names(ended.config), ended.how)

    def close(
        self, key: str, name: str, how: str, told: str = "", count: int | None = None
    ) -> None:
        """Take note that something ended.

        Args:
            key: of what was followed.
            name: as a line has it.
            how: it ended.
            told: what there is to tell of it.
            count: how many have ended, if some had before this began.
        """
        # one that was stopped before its end, or never begun, is not finished
        self.finished = self.finished + (how != "stopped") if count is None else count
        self.endings[how] += 1
        self.pace.end(key, whole=how in ("done", "pruned"))
        with self.drawing:
            self.open = {other: one for other, one in self.open.items() if other != key}
            self._remove({key})
            self._advance()
        if not (self.live or self.quiet):
            line = visible(f"[{self.finished}/{self.total}] {name}: {how}{told}")
            print(line, file=sys.stderr)

    def _advance(self) -> None:
        """Bring the bar of all runs to where they are."""
        parts = sum(max(0.0, part) for part in self.pace.going.values())
        note = _told({"running": len(self.bars), **self.endings})
        self.progress.update(self.all, completed=self.finished + parts, note=note)

    def _remove(self, keys: set[str]) -> None:
        for key in keys & self.bars.keys():
            self.progress.remove_task(self.bars.pop(key))

    def _look(self) -> None:
        next_line = time.monotonic() + BETWEEN_LINES
        while not self.ending.wait(BETWEEN_LOOKS):
            if self.find is not None:
                self.open = self.find()
            going = {key: row for key in self.open if (row := self._last_row(key))}
            begun = self.find is None and self.pace.since is not None
            for key, row in going.items():
                if one := self.open.get(key):
                    part = row["step"] / one.total if one.total else None
                    self.pace.see(key, part, new=begun and not self.before[key])
            if self.live:
                with self.drawing:
                    self._draw(going)
            elif not self.quiet and time.monotonic() > next_line:
                next_line += BETWEEN_LINES
                for key, row in going.items():
                    if one := self.open.get(key):
                        print(self._line(key, one, row), file=sys.stderr)
                if self.total > 1:
                    print(self._whole(len(going)), file=sys.stderr)

    def _whole(self, running: int) -> str:
        """All runs in one line."""
        bad = sum(n for how, n in self.endings.items() if how not in ("done", "stopped"))
        told = [f"all {self.what}s: {self.finished - bad} of {self.total} done"]
        told += filter(None, [_told({"running": running, **self.endings})])
        return ", ".join(told) + time_left(self.pace.left(self.total - self.finished))

    def _draw(self, going: dict[str, dict[str, Any]]) -> None:
        self.board.look()
        self._remove(self.bars.keys() - self.open.keys())
        for key, row in going.items():
            one = self.open.get(key)
            if one is None or key in self.board.standings:
                continue
            if key not in self.bars:
                self.bars[key] = self.progress.add_task(one.name, total=one.total, note="")
            done = max(0, row["step"])
            self.progress.update(self.bars[key], completed=done, note=_note(row))
        self._advance()

    def _line(self, key: str, one: Followed, row: dict[str, Any]) -> str:
        done = max(0, row["step"])
        total = "?" if one.total is None else one.total
        left = time_left(self.pace.left_of(key))
        return f"{one.name}: step {done}/{total}, {_note(row)}{left}"

    def _last_row(self, key: str) -> dict[str, Any] | None:
        """How far something is, if it is at work; one that waits to go on is not."""
        one = self.open.get(key)
        if one is None or _written(one.logs) == self.before.get(key, ()):
            return None
        return one.last_row()


def _written(logs: Iterable[Path]) -> tuple[int, ...]:
    """When logs were written last, of those that there are."""
    times = []
    for log in logs:
        with suppress(OSError):
            times.append(log.stat().st_mtime_ns)
    return tuple(times)


def _last_row(log: Path) -> dict[str, Any] | None:
    """The last whole line with a loss that a run has written."""
    try:
        with open(log, "rb") as file:
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
                left = time_left(rest(step - first, total - step, last - started))
                said = f"{name}: {what} {step}/{total}, {note(row)}{left}"
                print(said, file=sys.stderr)

        yield show
