"""Workers end with their parent, however it ends, and leave runs that can be taken up."""

import os
import signal
import time
from pathlib import Path

import pytest

from attractor.runs.jobs import BETWEEN_LOOKS, _ending_with_parent, at_a_time, cores
from experiments.helpers import TINY, attractor, called


def members(group: int) -> list[int]:
    """The processes of a group that are not zombies."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z" and int(fields[2]) == group:
            found.append(int(path.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc").exists(), reason="counts processes as Linux shows them")
@pytest.mark.timeout(180)
def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    """As the out-of-memory killer does: SIGKILL, to the parent alone."""
    long = ("run", TINY, "--out", tmp_path, "-j", "2", "-q", "--set", "train.steps=1000000")
    process = attractor(*long)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.rglob("metrics.jsonl"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    group = process.pid
    assert len(members(group)) >= 3
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 20 * BETWEEN_LOOKS
    while members(group) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = members(group)
    if left:
        os.killpg(group, signal.SIGKILL)
    assert not left
    process.communicate()
    short = called("run", TINY, "--out", tmp_path, "-j", "2", "-q")
    assert short.returncode == 0, short.stderr


def test_a_worker_whose_parent_lives_goes_on(tmp_path: Path) -> None:
    """The lock is held: by this process, through another description of the file."""
    import fcntl

    alive = tmp_path / "alive"
    with open(alive, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with _ending_with_parent(alive):
            time.sleep(3 * BETWEEN_LOOKS)
    assert alive.exists()


def test_a_worker_without_a_parent_ends(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        with _ending_with_parent(tmp_path / "temporary" / "alive"):
            time.sleep(20)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 1


def test_there_is_room_for_as_many_runs_as_cores_have_threads_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {*range(6)}, raising=False)
    assert [at_a_time(None, threads) for threads in (1, 2, 4, 8)] == [6, 3, 1, 1]
    assert at_a_time(5, 2) == 5


@pytest.mark.parametrize(("counted", "expected"), [(5, 5), (None, 1)])
def test_where_no_system_tells_whose_cores_are_whose_all_are_counted(
    counted: int | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: counted)
    assert cores() == expected
