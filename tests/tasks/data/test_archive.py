"""Unpacking of archives, friendly and hostile."""

import io
import stat
import tarfile
import zipfile
from pathlib import Path
from random import Random

import pytest

from attractor.errors import InputError
from attractor.tasks.data import extract

FILES = {"a.txt": b"first", "folder/b.bin": bytes(1000)}


def make_tar(path: Path, *extra: tarfile.TarInfo, mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in FILES.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for info in extra:
            archive.addfile(info)
    return path


def make_zip(path: Path, *extra: zipfile.ZipInfo) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in FILES.items():
            archive.writestr(name, content)
        for info in extra:
            archive.writestr(info, "target")
    return path


def tar_entry(name: str, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = "/etc/passwd"
    return info


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
def test_a_tar_archive_is_unpacked(tmp_path: Path, mode: str) -> None:
    archive = make_tar(tmp_path / "files.tar", mode=mode)
    assert contents(extract(archive, tmp_path / "new/out")) == FILES


def test_a_zip_archive_is_unpacked(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "files.zip", zipfile.ZipInfo("empty/"))
    out = extract(archive, tmp_path / "out")
    assert contents(out) == FILES
    assert (out / "empty").is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["files.zip", "out"]


HOSTILE = [
    ("../evil.txt", "leads out of the folder"),
    ("folder/../../evil.txt", "leads out of the folder"),
    ("/tmp/evil.txt", "has an absolute path"),
    ("C:/evil.txt", "has an absolute path"),
    ("..\\evil.txt", "has an absolute path"),
]


def refused(archive: Path, says: str) -> None:
    """Nothing at all may be written, neither inside the folder nor outside."""
    before = set(archive.parent.rglob("*"))
    with pytest.raises(InputError, match=rf"{says}\. Nothing was unpacked; do not use this"):
        extract(archive, archive.parent / "deep/out")
    assert set(archive.parent.rglob("*")) - before <= {archive.parent / "deep"}


@pytest.mark.parametrize(("name", "says"), HOSTILE)
def test_a_tar_member_that_leads_elsewhere_is_refused(tmp_path: Path, name: str, says: str) -> None:
    refused(make_tar(tmp_path / "files.tar.gz", tar_entry(name)), says)


@pytest.mark.parametrize(("name", "says"), HOSTILE)
def test_a_zip_member_that_leads_elsewhere_is_refused(tmp_path: Path, name: str, says: str) -> None:
    refused(make_zip(tmp_path / "files.zip", zipfile.ZipInfo(name)), says)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (tarfile.SYMTYPE, "is a link"),
        (tarfile.LNKTYPE, "is a link"),
        (tarfile.FIFOTYPE, "is a device"),
        (tarfile.CHRTYPE, "is a device"),
    ],
)
def test_links_and_devices_in_tar_are_refused(tmp_path: Path, kind: bytes, says: str) -> None:
    refused(make_tar(tmp_path / "files.tar.gz", tar_entry("innocent", kind)), says)


def test_links_in_zip_are_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("innocent")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    refused(make_zip(tmp_path / "files.zip", link), "is a link")


def test_an_archive_that_would_fill_the_disk_is_refused(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "files.zip")
    with pytest.raises(InputError, match=r"at most 1,000 bytes, but .* unpacks to 1,005"):
        extract(archive, tmp_path / "out", limit=1000)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["tar", "zip"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "nonsense"])
def test_a_damaged_archive_leaves_nothing(tmp_path: Path, kind: str, damage: str) -> None:
    archive = tmp_path / f"files.{kind}"
    (make_tar if kind == "tar" else make_zip)(archive)
    content = archive.read_bytes()
    middle = len(content) // 3
    archive.write_bytes(
        {
            "cut": content[:middle],
            "flipped": content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :],
            "nonsense": b"nonsense",
        }[damage]
    )
    with pytest.raises(InputError, match=r"intact tar or zip archive, but .* cannot be read"):
        extract(archive, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == [archive.name]


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match="a folder that does not exist yet, but .*out does"):
        extract(make_zip(tmp_path / "files.zip"), tmp_path / "out")


def test_a_missing_archive_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"an archive at .*none\.zip, but there is no such file"):
        extract(tmp_path / "none.zip", tmp_path / "out")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "files.zip")
    with pytest.raises(InputError, match="able to write .*, but got: .*--data"):
        extract(archive, archive / "out")


@pytest.mark.parametrize("mode", ["w:gz", "w:xz", "w:bz2"])
def test_a_limit_is_checked_before_what_is_beyond_it_is_decompressed(
    tmp_path: Path, mode: str
) -> None:
    """The end of the archive is cut off: whoever decompressed all of it would notice that."""
    archive = tmp_path / "bomb.tar"
    with tarfile.open(archive, mode) as made:  # type: ignore[call-overload]
        info = tarfile.TarInfo("noise")
        info.size = 2 << 20
        made.addfile(info, io.BytesIO(Random(0).randbytes(info.size)))
    content = archive.read_bytes()
    archive.write_bytes(content[: len(content) - 30])
    with pytest.raises(InputError, match=r"at most 1,000 bytes, but .* unpacks to 2,097,152 or"):
        extract(archive, tmp_path / "out", limit=1000)
    assert not (tmp_path / "out").exists()


def test_a_header_cannot_be_larger_than_the_limit(tmp_path: Path) -> None:
    """A long name is read into memory at once, before any member is seen."""
    archive = tmp_path / "name.tar"
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 1 << 40
    archive.write_bytes(header.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with pytest.raises(InputError, match=r"at most 1,000 bytes, but .* unpacks to 1,099,5"):
        extract(archive, tmp_path / "out", limit=1000)


def test_a_damaged_bz2_is_not_called_a_full_disk(tmp_path: Path) -> None:
    archive = make_tar(tmp_path / "files.tar", mode="w:bz2")
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 255
    archive.write_bytes(content)
    with pytest.raises(InputError, match=r"intact tar or zip archive, but .* cannot be read"):
        extract(archive, tmp_path / "out")
