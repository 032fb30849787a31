"""A run folder followed into a sink: all of its numbers, each once."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from attractor.errors import InputError
from attractor.runs.folder import CONFIG, DONE, LOG_FILE, damage, locked
from attractor.runs.read import parse_row
from attractor.toml import parsed
from attractor.tracking.base import About, Point, Sink, Writer, flat, points
from attractor.tracking.place import begin, hold, holds


class Mirror:
    """One run on its way into one sink, which no other process may write to meanwhile.

    The numbers of ``metrics.jsonl`` become points named ``split/measure``. Those that a run ends
    with are also points named ``final/measure``, at its last step. What the sink has already is
    not written again; but if it is no longer how the log begins, or if a process was killed while
    it wrote, all of the run is written anew.

    Args:
        folder: of the run.
        sink: where to.
        root: the folder of the sink; a run has a folder of its own below it.

    Example:
        >>> from attractor.tracking import SINKS
        >>> mirror = Mirror(Path("runs/demo/lstm-0"), SINKS["csv"], Path("csv"))  # doctest: +SKIP
        >>> mirror.update(), mirror.update()  # doctest: +SKIP
        (120, 0)
    """

    def __init__(self, folder: Path, sink: Sink, root: Path) -> None:
        self.folder, self.sink, self.root = folder, sink, root
        config = parsed((folder / CONFIG).read_text(encoding="utf-8"))
        self.about = About(str(config.get("experiment", "")), folder.resolve().name, flat(config))
        self.place = self.about.place(root)
        self.writer: Writer | None = None
        self._whole = True
        self._hold = locked(self.place, wait=True)
        self._hold.__enter__()
        self.taken = b""
        self.ended = False
        self.seen: set[tuple[str, int]] = set()
        self._take_up()

    def update(self) -> int:
        """Write what is new; how many points."""
        log = _whole_lines(self.folder)
        if not log.startswith(self.taken):
            self._start_over()
        new, ended = self._new(log)
        if new and self.writer is None:
            if self.taken and not self.sink.appends:
                self._start_over()
                new, ended = self._new(log)
            self._open()
        if self.writer is not None:
            self._whole = False
            self.writer.add(new)
            self._whole = True
        self.seen.update((point.name, point.step) for point in new)
        self.taken, self.ended = log, ended
        return len(new)

    def close(self) -> None:
        """Leave the sink, with a mark of what it holds."""
        if self.writer is not None:
            self.writer.close()
            self.writer = None
            if self._whole:
                digest = hashlib.sha256(self.taken).hexdigest()
                held = {"position": len(self.taken), "sha256": digest, "ended": self.ended}
                hold(self.place, held)
        self._hold.__exit__(None, None, None)

    def _take_up(self) -> None:
        """Know what the sink holds already, if it is the beginning of the log."""
        match holds(self.place):
            case {"position": int(position), "sha256": str(digest), "ended": bool(ended)}:
                begun = _whole_lines(self.folder)[:position]
            case _:
                return
        if hashlib.sha256(begun).hexdigest() == digest:
            self.seen = {(point.name, point.step) for point in _points(begun)}
            self.taken, self.ended = begun, ended

    def _new(self, log: bytes) -> tuple[list[Point], bool]:
        """The points that the sink does not have yet, and whether they are the last of the run."""
        new: dict[tuple[str, int], Point] = {}
        for point in _points(log[len(self.taken) :]):
            if (key := (point.name, point.step)) not in self.seen:
                new.setdefault(key, point)
        end = None if self.ended else _end(self.folder)
        return [*new.values(), *(end or [])], self.ended or end is not None

    def _open(self) -> None:
        """Open the run in the sink, which is not known to hold it whole until `close`."""
        begin(self.place, fresh=not self.taken)
        self.writer = self.sink.open(self.about, self.root, not self.taken)

    def _start_over(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.writer = None
        self.taken, self.ended, self.seen = b"", False, set()


def _whole_lines(folder: Path) -> bytes:
    """The log of a run, up to its last whole line."""
    try:
        log = (folder / LOG_FILE).read_bytes()
    except FileNotFoundError:
        return b""
    return log[: log.rfind(b"\n") + 1]


def _points(lines: bytes) -> Iterator[Point]:
    for line in lines.splitlines():
        try:
            row = parse_row(line)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"expected rows with a step and a split in {LOG_FILE}, but got {line[:80]!r}. "
                "Try leaving this run out."
            ) from error
        yield from points(row)


def _end(folder: Path) -> list[Point] | None:
    """What a run ended with, as points; nothing while it has not."""
    if not (folder / DONE).exists() or damage(folder):
        return None
    outcome = json.loads((folder / DONE).read_bytes())
    row = {"step": outcome["steps"], "split": "final"}
    found = outcome.get("test")
    return list(points(row | found if isinstance(found, dict) else row))
