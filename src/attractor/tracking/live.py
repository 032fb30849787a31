"""Runs followed into sinks: those that are there, or while they go on."""

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from attractor.errors import InputError, RunError, unknown
from attractor.files import explained
from attractor.runs.folder import CONFIG
from attractor.runs.read import Damaged, read_runs
from attractor.tracking.base import Sink
from attractor.tracking.mirror import Mirror
from attractor.tracking.table import SINKS

logger = logging.getLogger(__name__)

BETWEEN_LOOKS = 2.0


class Tracked(NamedTuple):
    """How many runs and points of theirs were written, and which runs could not be read."""

    runs: int
    points: int
    damaged: list[Damaged]


def track(paths: Iterable[Path], sink: str, out: Path) -> Tracked:
    """Write what saved runs have measured into a sink; what it has already is left alone.

    Args:
        paths: run folders, or folders of them.
        sink: a key of `SINKS`.
        out: the sink's folder is the one of its name below this one.

    Example:
        >>> track([Path("runs/demo")], "tensorboard", Path("tracking"))  # doctest: +SKIP
        Tracked(runs=3, points=360, damaged=[])
    """
    known = sink_named(sink)
    runs, damaged = read_runs(paths)
    written = 0
    for run in runs:
        with _told(run.folder, out / sink):
            mirror = Mirror(run.folder, known, out / sink)
            try:
                written += mirror.update()
            finally:
                mirror.close()
    return Tracked(len(runs), written, damaged)


@contextmanager
def _told(folder: Path, root: Path) -> Iterator[None]:
    """Turn whatever a sink raises, such as of a full disk, into one sentence."""
    try:
        with explained(root):
            yield
    except (InputError, RunError):
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        raise RunError(
            f"expected {root} to take the numbers of {folder.name}, but got {what}. Mend that and "
            "run the same command again: what was written before is kept."
        ) from error


def sink_named(name: str) -> Sink:
    """A sink of the table, whose package is there."""
    if name not in SINKS:
        raise unknown("sink", name, SINKS)
    SINKS[name].needed()
    return SINKS[name]


class Live:
    """Follows runs into sinks for as long as they go on, in whichever process that is.

    A sink that fails does not touch the runs: it is told in a warning, and `track` catches up.

    Args:
        folders: of the runs, which need not be there yet.
        sinks: keys of `SINKS`.
        out: folders of the sinks are those of their names below this one.
    """

    def __init__(self, folders: Sequence[Path], sinks: Sequence[str], out: Path) -> None:
        known = {name: sink_named(name) for name in dict.fromkeys(sinks)}
        self.open = [
            (folder, sink, out / name) for folder in folders for name, sink in known.items()
        ]
        self.mirrors: dict[tuple[Path, Path], Mirror] = {}
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "Live":
        if self.open:
            self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        if self.thread.is_alive():
            self.thread.join()
        self._follow()
        for key in list(self.mirrors):
            self._close(key)

    def _look(self) -> None:
        while not self.ending.wait(BETWEEN_LOOKS):
            self._follow()

    def _follow(self) -> None:
        for one in list(self.open):
            folder, sink, root = one
            if not (folder / CONFIG).exists():
                continue
            key = (folder, root)
            try:
                if key not in self.mirrors:
                    self.mirrors[key] = Mirror(folder, sink, root)
                self.mirrors[key].update()
            except Exception as error:
                logger.warning("%s is no longer followed into %s: %s", folder.name, root, error)
                self.open.remove(one)
                self._close(key)
                continue
            if self.mirrors[key].ended:
                self.open.remove(one)
                self._close(key)

    def _close(self, key: tuple[Path, Path]) -> None:
        mirror = self.mirrors.pop(key, None)
        if mirror is None:
            return
        try:
            mirror.close()
        except Exception as error:
            logger.warning("%s could not be closed in %s: %s", key[0].name, key[1], error)
