"""Whether the files of a data set are there, and are what was published."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from attractor.tasks.data.catalogue import File, Part, dataset
from attractor.tasks.data.root import data_root

State = Literal["ok", "missing", "corrupt", "unchecked"]


@dataclass(frozen=True)
class Status:
    """How one part of a data set fares; `detail` says what is wrong, or why it is unchecked."""

    part: str
    path: Path
    state: State
    detail: str = ""


class Found(NamedTuple):
    """A file that holds a part; `file` is ``None`` when no sum of it in this form is known."""

    path: Path
    file: File | None


def locate(part: Part, root: Path) -> Found | None:
    """The file that holds a part: as published, else plain or as ``.xz`` or ``.gz``."""
    for file in part.forms:
        path = root / file.path
        if path.is_file():
            return Found(path, file if file.has_sum else None)
    for file in part.forms:
        if not file.path.endswith(".npz"):
            plain = file.path.removesuffix(".gz")
            for other in (plain, f"{plain}.xz", f"{plain}.gz"):
                if (root / other).is_file():
                    return Found(root / other, None)
    return None


def fault(path: Path, file: File) -> str | None:
    """What tells a file from the published one, or ``None`` when nothing does."""
    size = path.stat().st_size
    if file.size is not None and size < file.size:
        return f"it is truncated, with {size:,} of {file.size:,} bytes"
    if file.size is not None and size > file.size:
        return f"it is too long, with {size:,} bytes instead of {file.size:,}"
    # MD5 is not for secrecy: some publishers give nothing better to tell a damaged file by
    kind, expected = ("SHA-256", file.sha256) if file.sha256 else ("MD5", file.md5)
    assert expected is not None, f"no sum of {file.path} is known"
    algorithm = kind.replace("-", "").lower()
    with path.open("rb") as stream:
        found = hashlib.file_digest(
            stream, lambda: hashlib.new(algorithm, usedforsecurity=False)
        ).hexdigest()
    if found != expected:
        return f"it is corrupt: its {kind} sum is {found[:16]}..., not {expected[:16]}..."
    return None


def verify(name: str, root: str | Path | None = None) -> list[Status]:
    """How each part of a data set fares, in the order of the catalogue.

    ``ok`` is a published file with the right sum; ``corrupt`` one with a wrong size or sum;
    ``unchecked`` is a file in a form of which no sum is known, such as one that was unpacked,
    which is checked by its structure when it is loaded; ``missing`` is none of these.

    Args:
        name: the data set.
        root: the data root; ``None`` follows `data_root`.

    Example:
        >>> [status.state for status in verify("mnist", "no such folder")]
        ['missing', 'missing', 'missing', 'missing']
    """
    folder = data_root(root)
    statuses = []
    for title, part in dataset(name).parts.items():
        found = locate(part, folder)
        if found is None:
            status = Status(title, folder / part.forms[0].path, "missing", "no such file")
        elif found.file is None:
            status = Status(title, found.path, "unchecked", "no sum is known of this form")
        else:
            wrong = fault(found.path, found.file)
            status = Status(title, found.path, "corrupt" if wrong else "ok", wrong or "")
        statuses.append(status)
    return statuses
