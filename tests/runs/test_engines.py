"""Engines keep to the number of runs at a time, and say soon what is not there."""

import os
import signal
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from attractor.errors import InputError, RunError
from attractor.runs import jobs
from attractor.runs.engines import ENGINES, Places, slurm
from attractor.runs.engines.ray import PATIENCE
from attractor.runs.jobs import Ended, run_one


class Executor:
    """In the place of submitit's: a job is done when it was asked for the second time."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.going = self.most = 0

    @contextmanager
    def batch(self) -> Iterator[None]:
        self.batches.append(0)
        yield

    def submit(self, work: Any, *given: Any) -> "Job":
        self.batches[-1] += 1
        self.going += 1
        self.most = max(self.most, self.going)
        return Job(self, given)


class Job:
    def __init__(self, executor: Executor, given: Any) -> None:
        self.executor, self.given, self.asked = executor, given, 0

    def done(self) -> bool:
        self.asked += 1
        return self.asked > 1

    def result(self) -> Ended[Any]:
        self.executor.going -= 1
        return run_one(*self.given)


def sent(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    places: Places,
    do: Callable[..., None] = lambda config, stop: None,
    on_end: Callable[[Ended[Any]], None] = lambda ended: None,
) -> tuple[Executor, list[str]]:
    """What five runs make of an executor, and how they end."""
    executor = Executor()
    monkeypatch.setattr(slurm, "_executor", lambda *given: executor)
    monkeypatch.setattr(slurm, "BETWEEN_LOOKS", 0.0)
    ended = ENGINES["slurm"](
        range(5), do, name=str, folder=tmp_path, threads=2, places=places, on_end=on_end
    )
    return executor, [one.how for one in ended]


def test_slurm_tried_out_here_keeps_to_the_runs_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "cores", lambda: 6)
    for asked, most in ((1, 1), (2, 2), (None, 3)):
        executor, ended = sent(tmp_path, monkeypatch, Places("slurm", asked, "local"))
        assert (executor.most, ended) == (most, ["done"] * 5)
    executor, ended = sent(tmp_path, monkeypatch, Places("slurm", 2))  # Slurm itself counts
    assert (executor.batches, ended) == ([5], ["done"] * 5)


def test_what_waits_is_not_sent_after_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(ended: Ended[Any]) -> None:
        if ended.how == "done":
            [place] = tmp_path.glob(".attractor-*")
            (place / "stop").touch()

    executor, ended = sent(tmp_path, monkeypatch, Places("slurm", 2, "local"), on_end=end)
    assert sum(executor.batches) == 2
    assert sorted(ended) == ["done", *["stopped"] * 4]


def test_a_job_whose_time_is_over_is_queued_again_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("submitit")
    monkeypatch.setattr(slurm, "DAYS", 10)  # of so few minutes, submitit takes all for used up

    def do(config: Path, *, stop: Callable[[], bool]) -> None:
        turns = len(list(config.iterdir()))
        (config / f"turn {turns}").touch()
        if turns == 0:
            os.kill(os.getpid(), signal.SIGUSR2)  # what Slurm sends 90 seconds before the end
            time.sleep(60)

    begun = tmp_path / "begun"
    begun.mkdir()
    [ended] = ENGINES["slurm"](
        [begun],
        do,
        name=str,
        folder=tmp_path,
        threads=1,
        places=Places("slurm", 1, "local"),
        on_end=lambda ended: None,
    )
    assert (ended.how, sorted(path.name for path in begun.iterdir())) == (
        "done",
        ["turn 0", "turn 1"],
    ), ended


def test_jobs_ask_for_hours_not_for_the_minutes_of_submitit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("submitit")
    command = tmp_path / "srun"  # by which submitit knows a cluster of Slurm
    command.touch()
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    asked = slurm._executor(tmp_path / "logs", None, 3, 2)._executor
    assert (asked.parameters["time"], asked.max_num_timeout) == (slurm.TURN, slurm.TURNS)
    assert (asked.parameters["cpus_per_task"], asked.parameters["array_parallelism"]) == (2, 3)
    here = slurm._executor(tmp_path / "logs", "local", 3, 2)._executor
    assert here.parameters["timeout_min"] == slurm.DAYS


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://127.0.0.1:{}", "[::1]:{}"])
def test_a_cluster_that_is_not_there_is_told_at_once(form: str, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = form.format(free.getsockname()[1])
    began = time.monotonic()
    with pytest.raises(RunError, match=r"expected a Ray cluster at .*, but got: \w.*\. Start one"):
        _on_ray(address, tmp_path)
    assert time.monotonic() - began < 2 * PATIENCE + 20  # most of it to import Ray


@pytest.mark.parametrize("address", ["127.0.0.1", "somewhere", "host:port"])
def test_what_is_no_address_of_a_cluster_is_refused(address: str, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    with pytest.raises(InputError, match=rf"HOST:PORT .* but got '{address}'. Try --address auto"):
        _on_ray(address, tmp_path)


def _on_ray(address: str, folder: Path) -> None:
    ENGINES["ray"](
        range(1),
        lambda config, stop: None,
        name=str,
        folder=folder,
        threads=1,
        places=Places("ray", 1, address),
        on_end=lambda ended: None,
    )
