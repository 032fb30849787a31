"""Loading of arrays: every form of a file, and every way in which it can be damaged."""

import gzip
import hashlib
import lzma
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from attractor.errors import InputError
from attractor.tasks.data import (
    DATASETS,
    Dataset,
    File,
    Part,
    load_array,
    load_lines,
    verify,
)

ARRAY = np.arange(24, dtype=np.uint8).reshape(4, 3, 2)
IDX = struct.pack(">4I", 0x0803, 4, 3, 2) + ARRAY.tobytes()
GZ = gzip.compress(IDX, mtime=0)


def file(path: str, content: bytes, *, strong: bool = True) -> File:
    return File(
        path,
        md5=hashlib.md5(content).hexdigest(),
        sha256=hashlib.sha256(content).hexdigest() if strong else None,
        size=len(content) if strong else None,
    )


def npz(path: Path, *, content: NDArray[np.uint8] = ARRAY, name: str = "arr_0") -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **{name: content})  # type: ignore[arg-type]
    return path.read_bytes()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data root, and a data set of one array that is published as gz and as npz."""
    other = npz(tmp_path / "elsewhere.npz")
    forms = (file("Tiny/raw/images.gz", GZ), file("Tiny/raw/tiny.npz", other, strong=False))
    tiny = Dataset("Tiny", "", "", (), {"images": Part(ARRAY.shape, forms)})
    monkeypatch.setitem(DATASETS, "tiny", tiny)
    (tmp_path / "root/Tiny/raw").mkdir(parents=True)
    return tmp_path / "root"


@pytest.mark.parametrize(
    ("name", "content"),
    [("images.gz", GZ), ("images", IDX), ("images.xz", lzma.compress(IDX))],
)
def test_a_file_is_read_plain_or_compressed(root: Path, name: str, content: bytes) -> None:
    (root / "Tiny/raw" / name).write_bytes(content)
    assert np.array_equal(load_array("tiny", "images", root), ARRAY)


def test_an_npz_file_is_read(root: Path) -> None:
    npz(root / "Tiny/raw/tiny.npz")
    assert np.array_equal(load_array("tiny", "images", root), ARRAY)


def test_the_published_file_is_preferred_to_one_that_cannot_be_checked(root: Path) -> None:
    (root / "Tiny/raw/images").write_bytes(b"nonsense")
    (root / "Tiny/raw/images.gz").write_bytes(GZ)
    assert np.array_equal(load_array("tiny", "images", root), ARRAY)


def test_a_missing_file_is_named_with_three_ways_out(root: Path) -> None:
    with pytest.raises(InputError) as got:
        load_array("tiny", "images", root)
    text = str(got.value)
    assert str(root / "Tiny/raw/images.gz") in text
    assert "Pass --data with the folder that holds Tiny, set ATTRACTOR_DATA" in text
    assert "`attractor data fetch tiny`" in text


def damage(content: bytes, kind: str) -> bytes:
    if kind == "truncated":
        return content[:-3]
    if kind == "longer":
        return content + b"\0"
    return content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("truncated", r"it is truncated, with \d+ of \d+ bytes"),
        ("longer", r"it is too long, with \d+ bytes instead of \d+"),
        ("flipped", r"it is corrupt: its SHA-256 sum is \w{16}\.\.\., not \w{16}\.\.\."),
    ],
)
def test_a_damaged_published_file_is_told_by_size_and_sum(root: Path, kind: str, says: str) -> None:
    path = root / "Tiny/raw/images.gz"
    path.write_bytes(damage(GZ, kind))
    with pytest.raises(
        InputError, match=says + r"\. Delete it and run `attractor data fetch tiny`"
    ):
        load_array("tiny", "images", root)
    (status,) = verify("tiny", root)
    assert status.state == "corrupt"
    assert status.path == path


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("images", IDX[:-1], "it cannot be read: expected an idx file of 40 bytes"),
        ("images", IDX + b"\0", "it has more"),
        ("images", b"\0\0\x0d\3" + IDX[4:], "magic number"),
        ("images", struct.pack(">4I", 0x0803, 5, 3, 2) + IDX[16:], r"header says \(5, 3, 2\)"),
        ("images.xz", lzma.compress(IDX)[:-8], "it cannot be read"),
        ("images.xz", b"nonsense", "it cannot be read"),
    ],
)
def test_a_file_without_a_sum_is_checked_by_its_structure(
    root: Path, name: str, content: bytes, says: str
) -> None:
    (root / "Tiny/raw" / name).write_bytes(content)
    with pytest.raises(InputError, match=says):
        load_array("tiny", "images", root)


def test_a_known_md5_sum_is_checked_where_there_is_no_better(root: Path) -> None:
    path = root / "Tiny/raw/tiny.npz"
    path.write_bytes(damage(npz(path), "flipped"))
    with pytest.raises(InputError, match="its MD5 sum is"):
        load_array("tiny", "images", root)


@pytest.mark.parametrize("kind", ["gz", "shape", "name", "pickle", "nonsense"])
def test_a_published_file_with_the_wrong_content_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    path = root / "Tiny/raw/tiny.npz"
    if kind == "shape":
        npz(path, content=ARRAY[:2])
    elif kind == "name":
        npz(path, name="other")
    elif kind == "pickle":
        np.savez(path, arr_0=np.array([{}], dtype=object))
    elif kind == "nonsense":
        path.write_bytes(pickle.dumps(ARRAY))
    else:
        path = path.with_name("tiny.gz")
        path.write_bytes(b"not gzip at all")
    forms = (file(f"Tiny/raw/{path.name}", path.read_bytes()),)
    tiny = Dataset("Tiny", "", "", (), {"images": Part(ARRAY.shape, forms)})
    monkeypatch.setitem(DATASETS, "tiny", tiny)
    with pytest.raises(InputError, match="to be the published file of Tiny, but it cannot be read"):
        load_array("tiny", "images", root)


def test_verify_says_what_is_there(root: Path) -> None:
    path = root / "Tiny/raw"
    assert [status.state for status in verify("tiny", root)] == ["missing"]
    (path / "images").write_bytes(IDX)
    (status,) = verify("tiny", root)
    assert (status.state, status.path) == ("unchecked", path / "images")
    npz(path / "tiny.npz")
    (status,) = verify("tiny", root)
    assert (status.state, status.path) == ("ok", path / "tiny.npz")
    (path / "images.gz").write_bytes(GZ)
    (status,) = verify("tiny", root)
    assert (status.part, status.state, status.path, status.detail) == (
        "images",
        "ok",
        path / "images.gz",
        "",
    )


@pytest.fixture
def raw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for a data set of a raw array and a text."""
    forms = (file("Raw/numbers.bin", ARRAY.tobytes()),)
    parts = {"numbers": Part(ARRAY.shape, forms), "words": Part(None, (File("Raw/words.txt"),))}
    monkeypatch.setitem(DATASETS, "raw", Dataset("Raw", "", "", (), parts))
    (tmp_path / "Raw").mkdir()
    return tmp_path / "Raw"


@pytest.mark.parametrize("pack", [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_raw_arrays_and_texts_are_read_plain_or_compressed(
    raw: Path, pack: tuple[str, Callable[[bytes], bytes]]
) -> None:
    suffix, compress = pack
    (raw / f"numbers.bin{suffix}").write_bytes(compress(ARRAY.tobytes()))
    (raw / f"words.txt{suffix}").write_bytes(compress(b"one\ntwo three\n"))
    assert np.array_equal(load_array("raw", "numbers", raw.parent), ARRAY)
    assert load_lines("raw", "words", raw.parent) == ["one", "two three"]
    states = [status.state for status in verify("raw", raw.parent)]
    assert states == (["unchecked", "unchecked"] if suffix else ["ok", "unchecked"])


@pytest.mark.parametrize(("content", "says"), [(bytes(23), "has 23"), (bytes(25), "has more")])
def test_a_raw_file_of_another_size_is_refused(raw: Path, content: bytes, says: str) -> None:
    (raw / "numbers.bin.xz").write_bytes(lzma.compress(content))
    with pytest.raises(InputError, match=rf"of 24 bytes for shape \(4, 3, 2\), but it {says}"):
        load_array("raw", "numbers", raw.parent)


def test_a_text_that_is_none_is_refused(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (raw / "words.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="it cannot be read: .*utf-8"):
        load_lines("raw", "words", raw.parent)
    monkeypatch.setattr("attractor.tasks.data.arrays.LONGEST_TEXT", 2)
    with pytest.raises(InputError, match="a text of at most 2 bytes, but it has more"):
        load_lines("raw", "words", raw.parent)
