"""Fetching of data sets, as `attractor data fetch` does."""

from pathlib import Path

from filelock import FileLock, Timeout

from attractor.errors import InputError, RunError
from attractor.tasks.data.catalogue import Part, dataset
from attractor.tasks.data.checks import fault, locate
from attractor.tasks.data.download import Progress, download
from attractor.tasks.data.root import data_root
from attractor.tasks.options import whole


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
    parts = [part for part in published.parts.values() if not present(part, folder)]
    if not parts:
        return []
    fetched = []
    lock = folder / f".fetch-{name}.lock"
    try:
        for part in parts:
            (folder / part.forms[0].path).parent.mkdir(parents=True, exist_ok=True)
        with FileLock(lock, timeout=wait):
            for part in parts:
                # another fetch may have brought it while this one waited for the lock
                if present(part, folder):
                    continue
                file = part.forms[0]
                target = folder / file.path
                addresses = [address + target.name for address in published.addresses]
                download(
                    file,
                    addresses,
                    target,
                    progress=progress or silent,
                    timeout=timeout,
                    tries=tries,
                )
                fetched.append(target)
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


def present(part: Part, folder: Path) -> bool:
    """Whether a part is there in a published form with the right sum."""
    found = locate(part, folder)
    return found is not None and found.file is not None and fault(found.path, found.file) is None


def silent(path: str, done: int, total: int | None) -> None:
    """Progress that nobody watches."""
