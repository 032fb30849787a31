"""Fetching of data sets: what is there already, who else is fetching, where it goes."""

import os
import threading
from pathlib import Path

import pytest
from filelock import FileLock

from attractor.errors import InputError, RunError
from attractor.tasks.data import fetch, verify
from tasks.data.server import CONTENT, WRONG, Fetcher


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
