"""Writing files so that nobody ever sees half of one, and reading back what was written."""

import errno
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from attractor.errors import InputError

T = TypeVar("T")


def write_atomic(path: Path, data: bytes | str, *, lasting: bool = True) -> None:
    """Replace a file's contents at once: readers see the old file or the new, never a part.

    Args:
        path: the file.
        data: its new contents.
        lasting: wait until they are on the disk, and so last through a power cut.
    """
    raw = data.encode() if isinstance(data, str) else data
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(raw)
                file.flush()
                if lasting:
                    os.fsync(file.fileno())
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        if lasting:
            sync_folder(path.parent)


def read_made(
    path: Path, make: Callable[[Any], T], what: str, command: str, name: str = "file"
) -> T:
    """What ``make`` reads out of a file of JSON that a command of ours wrote.

    Args:
        path: the file.
        make: takes what the file holds; an error of its own means that the file is another one.
        what: the file in words, for the sentence that says it is not there.
        command: the command that writes such files.
        name: what it calls them.
    """
    try:
        return make(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(
            f"expected {what} at {path}, but got: {error.strerror}. "
            f"Try the {name} that `{command}` wrote."
        ) from error
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(
            f"expected {path} to be a file that `{command}` wrote, but it is not "
            f"({type(error).__name__}: {error}). Write it anew."
        ) from error


def check_target(path: Path, option: str) -> None:
    """Refuse the name of a file that could not be written, before any work is done for it.

    Args:
        path: the file; it and its folder need not exist yet.
        option: what on the command line it came from.
    """
    there = next(one for one in (path, *path.absolute().parents) if os.path.lexists(one))
    if there == path and path.is_dir():
        raise InputError(
            f"expected the name of a file for {option}, but got the folder {path}. "
            f"Try {path / 'report.html'}."
        )
    folder = path.parent if there == path else there
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        what = "may not be written to" if folder.is_dir() else "is not a folder"
        raise InputError(
            f"expected to be able to write {path} for {option}, but {folder} {what}. "
            "Choose another place."
        )


def sync_folder(folder: Path) -> None:
    """Make renames in a folder last through a power cut, where the platform can."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def explained(path: Path, option: str = "--out") -> Iterator[None]:
    """Turn what the operating system says about writing a file into one clear sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise InputError(
                f"expected room to write {path}, but the disk is full. Free some space and run "
                "the same command again: what was saved before is kept."
            ) from error
        raise InputError(
            f"expected to be able to write {path}, but got: {error.strerror}. "
            f"Check its permissions, or choose another folder with {option}."
        ) from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
