"""Fetching of data sets, as `attractor data fetch` does."""

import os
import shutil
from pathlib import Path

from filelock import FileLock, Timeout

from attractor.checks import whole
from attractor.errors import InputError, RunError
from attractor.tasks.data.archive import extract
from attractor.tasks.data.catalogue import Dataset, File, Part, dataset
from attractor.tasks.data.download import Progress, download
from attractor.tasks.data.intact import fault, locate
from attractor.tasks.data.root import data_root


def fetch(
    name: str,
    root: str | Path | None = None,
    *,
    progress: Progress | None = None,
    timeout: float = 30.0,
    tries: int = 3,
    wait: float = 600.0,
) -> list[Path]:
    """Fetch the parts of a data set that are not there as published, and say which.

    Safe to repeat, to interrupt, and to run twice at a time: a broken download is resumed, a
    corrupt file is replaced, and a second fetch waits for the first.

    Args:
        name: the data set.
        root: the data root; ``None`` follows `data_root`.
        progress: called with the path of a file, the bytes so far, and all its bytes if known.
        timeout: seconds without a byte after which a connection counts as stalled.
        tries: connections to each address before the next is tried.
        wait: seconds to wait for another fetch of the same data set to end.
    """
    published = dataset(name)
    whole("tries", tries, 1)
    folder = data_root(root)
    if not lacking(published, folder):
        return []
    fetched = []
    lock = folder / f".fetch-{name}.lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(lock, timeout=wait):
            # another fetch may have brought it while this one waited for the lock
            for file in lacking(published, folder):
                target = folder / file.path
                target.parent.mkdir(parents=True, exist_ok=True)
                if not present(Part(None, (file,)), folder):  # an archive may be
                    download(
                        file,
                        [address + target.name for address in published.addresses],
                        target,
                        progress=progress or silent,
                        timeout=timeout,
                        tries=tries,
                    )
                fetched += [target] if file != published.archive else unpack(published, folder)
    except Timeout as error:
        raise RunError(
            f"expected another fetch of {name} into {folder} to end within {wait:g} seconds, but "
            f"it still holds {lock}. Wait for it, or stop it, and try again."
        ) from error
    except OSError as error:
        raise InputError(
            f"expected a folder to write to, but {folder} gave: {error.strerror}. "
            "Choose another with --data."
        ) from error
    return fetched


def lacking(published: Dataset, folder: Path) -> list[File]:
    """The files to fetch: those of parts that are not there, or the archive that holds them."""
    missing = [part.forms[0] for part in published.parts.values() if not present(part, folder)]
    return [published.archive] if missing and published.archive else missing


def present(part: Part, folder: Path) -> bool:
    """Whether a part is there in a published form, with the right sum where one is known."""
    found = locate(part, folder)
    if found is None or found.file is None:
        return found is not None and not any(file.has_sum for file in part.forms)
    return fault(found.path, found.file) is None


def unpack(published: Dataset, folder: Path) -> list[Path]:
    """Put the files of a fetched archive in their places, and say where its parts are.

    The parts come last: they are what tells that a data set is complete.
    """
    assert published.archive is not None
    archive = folder / published.archive.path
    waiting = folder / f".{archive.name}-unpacked"
    shutil.rmtree(waiting, ignore_errors=True)
    extract(archive, waiting)
    parts = [Path(part.forms[0].path) for part in published.parts.values()]
    kept = {part.parts[0] for part in parts}
    files = [path.relative_to(waiting) for path in waiting.rglob("*") if path.is_file()]
    for path in sorted(files, key=lambda path: path in parts):
        if path.parts[0] in kept:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(waiting / path, folder / path)
    shutil.rmtree(waiting)
    archive.unlink()
    return [folder / part for part in parts]


def silent(path: str, done: int, total: int | None) -> None:
    """Progress that nobody watches."""
