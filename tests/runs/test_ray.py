"""A real Ray cluster of two nodes, of which a worker and then a node are killed on the way."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from attractor.experiments.grid import axes, sweep_runs
from attractor.experiments.train import run_all, run_folder
from attractor.runs.engines import Places
from experiments.helpers import TINY, numbers

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.filterwarnings("ignore"),  # Ray's own, of files that it leaves open
]


def runs(steps: int) -> list[Any]:
    changes = [f"train.steps={steps}", "train.checkpoint_every=200", "train.log_every=50"]
    return sweep_runs(str(TINY), axes(["model.hidden_size=2,3"]), changes, ["LSTM"])


def steps_of(folder: Path) -> int:
    try:
        lines = (folder / "metrics.jsonl").read_bytes().count(b"\n")
    except OSError:
        return 0
    return 50 * lines


def worker_pids() -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::run_as_worker"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def wait_for(ready: Any, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_worker_and_a_node_die_and_nothing_is_lost(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    configs = runs(3000)
    places = [run_folder(tmp_path / "ray", config) for config in configs]
    cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    node = cluster.add_node(num_cpus=1)
    killed: list[str] = []

    def kill() -> None:
        wait_for(lambda: worker_pids() and any(steps_of(place) > 300 for place in places))
        os.kill(worker_pids()[0], signal.SIGKILL)
        killed.append("worker")
        wait_for(lambda: sum(map(steps_of, places)) > 4000)
        cluster.remove_node(node, allow_graceful=False)
        killed.append("node")

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        ended = run_all(configs, tmp_path / "ray", places=Places("ray", address=cluster.address))
        killer.join()
    finally:
        cluster.shutdown()
    assert killed == ["worker", "node"]
    assert [one.how for one in ended] == ["done"] * 4, ended
    run_all(configs, tmp_path / "local", places=Places(jobs=1))
    for config, place in zip(configs, places, strict=True):
        assert numbers(place) == numbers(run_folder(tmp_path / "local", config))


def test_a_cluster_of_this_machine(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    ended = run_all(runs(20), tmp_path, places=Places("ray", jobs=2))
    assert [one.how for one in ended] == ["done"] * 4, ended
