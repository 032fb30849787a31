"""Fetching of data sets: what is there already, who else is fetching, where it goes."""

import hashlib
import io
import os
import tarfile
import threading
from pathlib import Path

import pytest
from filelock import FileLock

from attractor.errors import InputError, RunError
from attractor.tasks.data import DATASETS, Dataset, File, Part, fetch, verify
from tasks.data.server import CONTENT, WRONG, Fetcher, Server


def test_a_file_arrives_and_is_not_fetched_again(fetcher: Fetcher) -> None:
    assert fetcher("good") == [fetcher.target]
    assert fetcher.arrived()
    assert [status.state for status in verify("tiny", fetcher.root)] == ["ok"]
    assert fetcher("good") == []
    assert fetcher.server.asked == [("good", None)]


def test_progress_runs_from_nothing_to_all(fetcher: Fetcher) -> None:
    told: list[tuple[str, int, int | None]] = []
    fetcher("good", progress=lambda *step: told.append(step))
    assert {(path, total) for path, _, total in told} == {("Tiny/raw/tiny.gz", len(CONTENT))}
    done = [step for _, step, _ in told]
    assert done[0] == 0
    assert done == sorted(done)
    assert done[-1] == len(CONTENT)


def test_a_corrupt_file_in_place_is_replaced(fetcher: Fetcher) -> None:
    fetcher.target.parent.mkdir(parents=True)
    fetcher.target.write_bytes(WRONG)
    assert fetcher("good") == [fetcher.target]
    assert fetcher.arrived()


def test_a_folder_that_cannot_be_made_is_named(fetcher: Fetcher) -> None:
    fetcher.root.write_text("a file where a folder should be")
    with pytest.raises(InputError, match="expected a folder to write to, but .*--data"):
        fetcher("good")


def test_a_second_fetch_waits_and_says_so_in_the_end(fetcher: Fetcher) -> None:
    fetcher.root.mkdir()
    lock = FileLock(fetcher.root / ".fetch-tiny.lock")
    with lock, pytest.raises(RunError, match=r"to end within 0\.05 seconds, but it still holds"):
        fetcher("good", wait=0.05)
    assert fetcher("good") == [fetcher.target]


def test_two_fetches_at_once_bring_the_file_once(fetcher: Fetcher) -> None:
    fetcher.publish((f"http://127.0.0.1:{fetcher.server.server_address[1]}/good/",))
    results: list[list[Path]] = []
    threads = [
        threading.Thread(target=lambda: results.append(fetch("tiny", fetcher.root)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(len, results)) == [0, 1]
    assert fetcher.arrived()
    assert fetcher.server.asked == [("good", None)]


def test_a_data_set_that_is_complete_is_fetched_from_a_folder_one_may_only_read(
    fetcher: Fetcher,
) -> None:
    fetcher("good")
    os.remove(fetcher.root / ".fetch-tiny.lock")
    assert fetcher("absent") == []
    assert not (fetcher.root / ".fetch-tiny.lock").exists()


def test_no_tries_at_all_are_refused(fetcher: Fetcher) -> None:
    with pytest.raises(InputError, match="expected tries to be at least 1, but got 0"):
        fetcher("good", tries=0)


INSIDE = {
    "Packed/list.txt": b"one\ntwo\n",
    "Packed/images/one.jpg": b"1",
    "Packed/numbers.bin": bytes(range(6)),
    "stray.txt": b"not of the data set",
}


@pytest.fixture
def packed(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server with an archive of a text, of which no sum is known, an array and an image."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in INSIDE.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    server.content = stream.getvalue()
    numbers = INSIDE["Packed/numbers.bin"]
    array = File("Packed/numbers.bin", sha256=hashlib.sha256(numbers).hexdigest(), size=6)
    entry = Dataset(
        "Packed",
        "",
        "",
        (f"http://127.0.0.1:{server.server_address[1]}/good/",),
        {"list": Part(None, (File("Packed/list.txt"),)), "numbers": Part((2, 3), (array,))},
        File(
            "packed.tgz",
            sha256=hashlib.sha256(server.content).hexdigest(),
            size=len(stream.getvalue()),
        ),
    )
    monkeypatch.setitem(DATASETS, "packed", entry)
    return server


def contents(root: Path) -> dict[str, bytes]:
    files = (path for path in root.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def test_an_archive_is_unpacked_and_only_its_data_set_kept(packed: Server, tmp_path: Path) -> None:
    fetched = fetch("packed", tmp_path)
    assert fetched == [tmp_path / "Packed/list.txt", tmp_path / "Packed/numbers.bin"]
    assert contents(tmp_path) == {k: v for k, v in INSIDE.items() if k.startswith("Packed")}
    assert [status.state for status in verify("packed", tmp_path)] == ["unchecked", "ok"]
    assert fetch("packed", tmp_path) == []
    assert packed.asked == [("good", None)]


def test_what_is_corrupt_or_missing_is_replaced_from_the_archive(
    packed: Server, tmp_path: Path
) -> None:
    (tmp_path / "Packed").mkdir()
    (tmp_path / "Packed/numbers.bin").write_bytes(b"wrong!")
    (tmp_path / "Packed/mine.txt").write_bytes(b"kept")
    fetch("packed", tmp_path)
    assert contents(tmp_path)["Packed/numbers.bin"] == INSIDE["Packed/numbers.bin"]
    assert contents(tmp_path)["Packed/mine.txt"] == b"kept"


def test_an_archive_that_is_there_already_is_unpacked_without_the_network(
    packed: Server, tmp_path: Path
) -> None:
    (tmp_path / "packed.tgz").write_bytes(packed.content)
    # as a fetch leaves it that was killed while it unpacked
    (tmp_path / ".packed.tgz-unpacked").mkdir()
    assert len(fetch("packed", tmp_path)) == 2
    assert packed.asked == []
    assert contents(tmp_path) == {k: v for k, v in INSIDE.items() if k.startswith("Packed")}


@pytest.mark.parametrize("moved", range(4))  # the whole, then three files
def test_what_a_killed_fetch_had_not_moved_is_moved_by_the_next(
    moved: int, packed: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, replace = iter(range(moved)), os.replace

    def killed(source: Path, target: Path) -> None:
        if "-unpacked" in str(source) and next(left, None) is None:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        fetch("packed", tmp_path)
    monkeypatch.setattr(os, "replace", replace)
    fetch("packed", tmp_path)
    assert contents(tmp_path) == {k: v for k, v in INSIDE.items() if k.startswith("Packed")}
