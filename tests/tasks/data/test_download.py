"""Downloading of a file from servers that break off, stall, lie and vanish."""

from pathlib import Path

import pytest

from attractor.errors import InputError, RunError
from attractor.tasks.data import fetch
from tasks.data.server import CONTENT, HALF, Fetcher, Server


def test_a_truncated_file_is_resumed_from_where_it_broke_off(fetcher: Fetcher) -> None:
    fetcher("truncating")
    assert fetcher.arrived()
    assert fetcher.server.asked == [("truncating", None), ("truncating", f"bytes={HALF}-")]


def test_a_file_is_resumed_by_the_next_call(fetcher: Fetcher) -> None:
    with pytest.raises(RunError, match=r"broke off after 128,000 of 256,000 bytes\. What has .*"):
        fetcher("truncating", tries=1)
    assert fetcher.part.stat().st_size == HALF
    fetcher("good")
    assert fetcher.arrived()
    assert fetcher.server.asked[-1] == ("good", f"bytes={HALF}-")


def test_a_server_that_ignores_ranges_sends_it_all_again(fetcher: Fetcher) -> None:
    fetcher("rangeless")
    assert fetcher.arrived()
    assert fetcher.server.asked[-1] == ("rangeless", f"bytes={HALF}-")


def test_a_server_that_sends_another_piece_is_asked_for_all(fetcher: Fetcher) -> None:
    fetcher("confused", tries=3)
    assert fetcher.arrived()
    assert [asked for _, asked in fetcher.server.asked] == [None, f"bytes={HALF}-", None]


def test_a_stalled_connection_is_given_up_and_resumed_elsewhere(fetcher: Fetcher) -> None:
    fetcher("stalling", "good", timeout=0.5, tries=1)
    assert fetcher.arrived()
    assert fetcher.server.asked == [("stalling", None), ("good", f"bytes={HALF}-")]


def test_a_stall_is_named(fetcher: Fetcher) -> None:
    with pytest.raises(RunError, match="/stalling/tiny.gz stalled"):
        fetcher("stalling", timeout=0.05, tries=1)


def test_a_corrupt_file_is_deleted_and_fetched_elsewhere(fetcher: Fetcher) -> None:
    fetcher("corrupt", "good")
    assert fetcher.arrived()
    assert fetcher.server.asked == [("corrupt", None), ("good", None)]


def test_corruption_everywhere_leaves_nothing_behind(fetcher: Fetcher) -> None:
    with pytest.raises(RunError, match="gave a file that was deleted, as it is corrupt: its SHA"):
        fetcher("corrupt")
    assert not fetcher.target.exists()
    assert not fetcher.part.exists()


def test_surplus_bytes_do_not_make_the_file_longer(fetcher: Fetcher) -> None:
    fetcher("long")
    assert fetcher.arrived()


def test_a_part_of_another_file_is_found_out_and_fetched_afresh(fetcher: Fetcher) -> None:
    fetcher.part.parent.mkdir(parents=True)
    fetcher.part.write_bytes(b"x" * HALF)
    fetcher("good")
    assert fetcher.arrived()
    assert fetcher.server.asked == [("good", f"bytes={HALF}-"), ("good", None)]


def test_a_part_that_is_too_long_is_fetched_afresh(fetcher: Fetcher) -> None:
    fetcher.part.parent.mkdir(parents=True)
    fetcher.part.write_bytes(b"x" * (len(CONTENT) + 1))
    fetcher("good", tries=1)
    assert fetcher.arrived()


def test_a_complete_part_is_put_in_place_without_a_request(fetcher: Fetcher) -> None:
    fetcher.part.parent.mkdir(parents=True)
    fetcher.part.write_bytes(CONTENT)
    fetcher("absent")
    assert fetcher.arrived()
    assert fetcher.server.asked == []


def test_an_absent_file_is_asked_for_once_and_then_elsewhere(fetcher: Fetcher) -> None:
    fetcher("absent", "good")
    assert fetcher.arrived()
    assert fetcher.server.manners == ["absent", "good"]


def test_every_address_is_named_when_none_has_the_file(fetcher: Fetcher) -> None:
    with pytest.raises(RunError, match="/absent/tiny.gz answered 404 .*/broken/tiny.gz answered 5"):
        fetcher("absent", "broken")
    assert fetcher.server.manners == ["absent", "broken", "broken"]


def test_an_unreachable_server_is_named(fetcher: Fetcher, tmp_path: Path) -> None:
    with Server() as closed:
        port = closed.server_address[1]
    fetcher.publish((f"http://127.0.0.1:{port}/",))
    with pytest.raises(RunError, match=r"could not be reached \(.*refused\).*put the file at"):
        fetch("tiny", tmp_path, timeout=1.0, tries=1)


def test_an_address_on_this_disk_is_refused(fetcher: Fetcher, tmp_path: Path) -> None:
    fetcher.publish(("file:///etc/",))
    with pytest.raises(InputError, match="starts with http:// or https://, but got 'file:///etc/"):
        fetch("tiny", tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_a_full_disk_is_named(fetcher: Fetcher) -> None:
    fetcher.part.parent.mkdir(parents=True)
    fetcher.part.symlink_to("/dev/full")
    with pytest.raises(InputError, match="room to write .*tiny.gz.part, but the disk is full"):
        fetcher("good")
    assert not fetcher.target.exists()
