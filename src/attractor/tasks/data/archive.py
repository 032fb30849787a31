"""Unpacking of archives from strangers: nothing lands outside the folder, or only by halves."""

import lzma
import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Literal, NamedTuple

from attractor.errors import InputError
from attractor.files import explained

LIMIT = 16 << 30
"""Bytes beyond which an archive is taken for an attempt to fill the disk."""

DAMAGED = (
    EOFError,
    NotImplementedError,
    RuntimeError,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What the readers raise on an archive that is damaged, encrypted or of an unknown kind."""


Kind = Literal["file", "folder", "link", "device"]


class Member(NamedTuple):
    """One entry of an archive, of tar or of zip."""

    name: str
    kind: Kind
    size: int
    open: Callable[[], IO[bytes] | None]


def extract(archive: str | Path, folder: str | Path, *, limit: int = LIMIT) -> Path:
    """Unpack a tar or zip archive into a new folder, all of it or nothing.

    An archive with a member that is a link or a device, or whose name leads out of the folder,
    is refused before anything is written. The folder appears when it is complete.

    Args:
        archive: the file, compressed or not.
        folder: where its members go; it must not exist yet.
        limit: the most bytes that it may unpack to.
    """
    archive, folder = Path(archive), Path(folder)
    if not archive.is_file():
        raise InputError(f"expected an archive at {archive}, but there is no such file. Fetch it.")
    if folder.exists():
        raise InputError(
            f"expected a folder that does not exist yet, but {folder} does. Delete it or choose "
            "another."
        )
    with explained(folder, "--data"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        # beside the folder, so that the last move stays on one disk
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as waiting:
            inside = Path(waiting) / "inside"
            inside.mkdir()
            try:
                with members(archive) as entries:
                    refuse_unsafe(archive, entries, limit)
                    for entry in entries:
                        unpack(entry, inside)
            except DAMAGED as error:
                raise InputError(
                    f"expected an intact tar or zip archive, but {archive} cannot be read: "
                    f"{error}. Delete it and fetch it again."
                ) from error
            os.replace(inside, folder)
    return folder


@contextmanager
def members(archive: Path) -> Iterator[list[Member]]:
    """The entries of an archive, which can be opened as long as the context lasts."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            yield [zip_member(opened, info) for info in opened.infolist()]
    else:
        with tarfile.open(archive) as opened_tar:
            yield [tar_member(opened_tar, info) for info in opened_tar]


def zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Member:
    """An entry of a zip archive; the upper half of its attributes is the mode on Unix."""
    kind: Kind = "folder" if info.is_dir() else "file"
    if stat.S_ISLNK(info.external_attr >> 16):
        kind = "link"
    return Member(info.filename, kind, info.file_size, lambda: archive.open(info))


def tar_member(archive: tarfile.TarFile, info: tarfile.TarInfo) -> Member:
    """An entry of a tar archive."""
    kind: Kind = "device"
    if info.isreg():
        kind = "file"
    elif info.isdir():
        kind = "folder"
    elif info.issym() or info.islnk():
        kind = "link"
    return Member(info.name, kind, info.size, lambda: archive.extractfile(info))


def refuse_unsafe(archive: Path, entries: Sequence[Member], limit: int) -> None:
    """Raise for the first entry that must not be unpacked."""
    for entry in entries:
        path = PurePosixPath(entry.name)
        if path.is_absolute() or PureWindowsPath(entry.name).drive or "\\" in entry.name:
            wrong = "has an absolute path"
        elif ".." in path.parts:
            wrong = "leads out of the folder"
        elif entry.kind in ("link", "device"):
            wrong = f"is a {entry.kind}"
        else:
            continue
        raise InputError(
            f"expected an archive of plain files, but the member {entry.name!r} of {archive} "
            f"{wrong}. Nothing was unpacked; do not use this archive."
        )
    size = sum(entry.size for entry in entries)
    if size > limit:
        raise InputError(
            f"expected an archive of at most {limit:,} bytes, but {archive} unpacks to {size:,}. "
            "Nothing was unpacked; raise the limit if you trust it."
        )


def unpack(entry: Member, inside: Path) -> None:
    """Write one entry, with the usual permissions, whatever the archive says of them."""
    path = inside / entry.name
    if entry.kind == "folder":
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    source = entry.open()
    assert source is not None, "only links and devices have no content"
    with source, path.open("wb") as out:
        shutil.copyfileobj(source, out)
