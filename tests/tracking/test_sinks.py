"""Each sink for real: what its own tool reads back is what the run measured, to the last bit."""

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from attractor.tracking import SINKS, Mirror, Point
from tracking.folders import ENDS, ROWS, expected, same, write_run, written


def from_csv(root: Path, place: Path) -> list[Point]:
    return written(place)


def from_tensorboard(root: Path, place: Path) -> list[Point]:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    from tensorboard.util import tensor_util

    events = accumulator.EventAccumulator(str(place), size_guidance={"tensors": 0}).Reload()
    names = [name for name in events.Tags()["tensors"] if name != "settings/text_summary"]
    (settings,) = events.Tensors("settings/text_summary")
    assert b'"model.sizes": "[3, 4]"' in settings.tensor_proto.string_val[0]
    return sorted(
        Point(name, event.step, tensor_util.make_ndarray(event.tensor_proto).item())
        for name in names
        for event in events.Tensors(name)
    )


def from_mlflow(root: Path, place: Path) -> list[Point]:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{root}/mlflow.db")
    group: Any = client.get_experiment_by_name(place.parent.name)
    (run,) = client.search_runs([group.experiment_id])
    assert run.data.params["model.sizes"] == "[3, 4]"
    assert run.info.status == "FINISHED"
    return sorted(
        Point(name, one.step, one.value)
        for name in run.data.metrics
        for one in client.get_metric_history(run.info.run_id, name)
    )


def from_wandb(root: Path, place: Path) -> list[Point]:
    from wandb.proto import wandb_internal_pb2

    (file,) = place.glob("wandb/offline-run-*/*.wandb")
    found = []
    for raw in records(file.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(raw)
        row = {item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
        found += [Point(name, row["step"], float(row[name])) for name in row if "/" in name]
    return sorted(found)


def records(data: bytes) -> Iterator[bytes]:
    """The records of a log in LevelDB's format, after a header of seven bytes."""
    place, part = 7, b""
    while place < len(data):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        _, size, kind = struct.unpack_from("<IHB", data, place)
        part += data[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):
            yield part
            part = b""


READ: dict[str, Callable[[Path, Path], list[Point]]] = {
    "csv": from_csv,
    "mlflow": from_mlflow,
    "tensorboard": from_tensorboard,
    "wandb": from_wandb,
}


def test_all_are_tested() -> None:
    assert READ.keys() == SINKS.keys()


def follow(folder: Path, name: str, root: Path) -> int:
    mirror = Mirror(folder, SINKS[name], root)
    try:
        return mirror.update()
    finally:
        mirror.close()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in ("mlflow", "wandb")))
        for name in SINKS
    ],
)
@pytest.mark.filterwarnings("ignore")  # of their own packages
def test_every_number_is_there_once(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    if extra := SINKS[name].extra:
        pytest.importorskip(extra)
    monkeypatch.setenv("WANDB_SILENT", "true")
    run, place = tmp_path / "runs/supervised/a-3-1f", tmp_path / "out/supervised/a-3-1f"
    rows = ROWS["supervised"]
    write_run(run, rows[:3])
    follow(run, name, tmp_path / "out")
    write_run(run, rows, ENDS["supervised"])
    follow(run, name, tmp_path / "out")
    assert follow(run, name, tmp_path / "out") == 0
    assert same(READ[name](tmp_path / "out", place), expected("supervised"))
    # as after a kill: all is written anew, and nothing twice
    (place / "tracked.json").write_text("{}")
    assert follow(run, name, tmp_path / "out") == len(expected("supervised"))
    assert same(READ[name](tmp_path / "out", place), expected("supervised"))


def test_what_a_package_must_know_it_is_told_before_it_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLflow asks as it is imported whether it may report to its makers."""
    code = "import os\nSEEN = os.environ['QUIET'], os.environ['ASKED']\n"
    (tmp_path / "sink_of_others.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("ASKED", "by the user")
    monkeypatch.setenv("QUIET", "")  # so that it is as it was in the end
    monkeypatch.delenv("QUIET")
    told = {"QUIET": "true", "ASKED": "by us"}
    SINKS["csv"]._replace(extra="sink_of_others", environment=told).needed()
    assert import_module("sink_of_others").SEEN == ("true", "by the user")


QUIET = {
    "mlflow": "from mlflow.telemetry import get_telemetry_client as t; assert t() is None",
    "wandb": "import wandb; assert not wandb.env.error_reporting_enabled()",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", QUIET)
def test_nothing_is_reported_to_the_makers_of_a_tool(name: str) -> None:
    pytest.importorskip(name)
    code = f"from attractor.tracking.live import sink_named; sink_named({name!r}); {QUIET[name]}"
    # MLflow is quiet in tests by itself
    plain = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", code], env=plain, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
