"""What to say when the disk does not take what is written."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attractor.errors import RunError


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Writing to `path`, with the failures of the disk said in words."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise RunError(
                f"expected room for {path}, but the disk is full. "
                "Free some and try again, or choose another disk with --data."
            ) from error
        raise RunError(
            f"expected to write {path}, but got: {error.strerror}. "
            "Check its permissions, or choose another folder with --data."
        ) from error
