"""Unpacking of archives from strangers: nothing lands outside the folder, or only by halves."""

import bz2
import gzip
import lzma
import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any, Literal, NamedTuple

from attractor.errors import InputError
from attractor.files import explained

LIMIT = 16 << 30
"""Bytes beyond which an archive is taken for an attempt to fill the disk."""

HEADERS = 64 << 20
"""Bytes that the headers of a tar archive may take besides."""

COMPRESSED: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
"""How a compressed file starts, and what reads it."""

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


MemberType = Literal["file", "folder", "link", "device"]


class Member(NamedTuple):
    """One entry of an archive, of tar or of zip."""

    name: str
    kind: MemberType
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
                with members(archive, limit) as entries:
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
def members(archive: Path, limit: int) -> Iterator[list[Member]]:
    """The entries of an archive, which can be opened as long as the context lasts.

    Of a compressed tar no more is unpacked to find them than the limit and room for headers: a
    few kilobytes can hold more than a disk does.
    """
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            yield [zip_member(opened, info) for info in opened.infolist()]
        return
    with unpacked(archive) as file:
        metered: Any = Metered(file, limit + HEADERS, archive)
        with tarfile.open(fileobj=metered, mode="r:") as opened_tar:
            yield [tar_member(opened_tar, info) for info in bounded(archive, opened_tar, limit)]


def unpacked(archive: Path) -> IO[bytes]:
    """A file as it is without compression, known by its first bytes."""
    with archive.open("rb") as file:
        start = file.read(6)
    for mark, opener in COMPRESSED.items():
        if start.startswith(mark):
            opened: IO[bytes] = opener(archive)
            return opened
    return archive.open("rb")


class Metered:
    """A file to read from, but not beyond so many bytes."""

    def __init__(self, file: IO[bytes], most: int, archive: Path) -> None:
        self.file, self.most, self.archive = file, most, archive

    def read(self, size: int) -> bytes:
        self._check(self.file.tell() + size)
        with damage_told():
            return self.file.read(size)

    def seek(self, place: int) -> int:
        self._check(place)
        with damage_told():
            return self.file.seek(place)

    def tell(self) -> int:
        return self.file.tell()

    def _check(self, place: int) -> None:
        if place > self.most:
            raise too_large(self.archive, self.most - HEADERS, place)


@contextmanager
def damage_told() -> Iterator[None]:
    """Tell what a decompressor says of a damaged file from troubles with writing."""
    try:
        yield
    except OSError as error:
        raise tarfile.ReadError(str(error)) from error


def bounded(
    archive: Path, infos: Iterable[tarfile.TarInfo], limit: int
) -> Iterator[tarfile.TarInfo]:
    """The entries, until their sizes add up to more than the limit."""
    size = 0
    for info in infos:
        size += info.size
        if size > limit:
            raise too_large(archive, limit, size)
        yield info


def too_large(archive: Path, limit: int, size: int) -> InputError:
    return InputError(
        f"expected an archive of at most {limit:,} bytes, but {archive} unpacks to {size:,} or "
        "more. Nothing was unpacked; raise the limit if you trust it."
    )


def zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Member:
    """An entry of a zip archive; the upper half of its attributes is the mode on Unix."""
    kind: MemberType = "folder" if info.is_dir() else "file"
    if stat.S_ISLNK(info.external_attr >> 16):
        kind = "link"
    return Member(info.filename, kind, info.file_size, lambda: archive.open(info))


def tar_member(archive: tarfile.TarFile, info: tarfile.TarInfo) -> Member:
    """An entry of a tar archive."""
    kind: MemberType = "device"
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
        raise too_large(archive, limit, size)


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
