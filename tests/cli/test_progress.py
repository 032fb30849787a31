"""What is shown of runs that go on elsewhere."""

import json
from pathlib import Path

import pytest

from attractor.cli.progress import Watch
from attractor.experiments.config import RunConfig
from attractor.experiments.table import load


def watch(tmp_path: Path) -> tuple[Watch, RunConfig]:
    config = load("permuted-mnist")[1].runs("permuted-mnist")[0]
    return Watch([config], tmp_path, quiet=True), config


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"step": 10, "split": "train", "loss": 0.5}], "step 10/1000, loss 0.5000"),
        (
            [
                {"step": 10, "split": "train", "loss": 0.5},
                {"step": 10, "split": "valid", "accuracy": 0.9},
            ],
            "step 10/1000, loss 0.5000",
        ),
        (
            [{"step": -3, "split": "meta", "loss": 2.0}],
            "step 0/1000, 3 steps of preparation left, loss 2.0000",
        ),
    ],
)
def test_a_line_has_the_last_loss(tmp_path: Path, rows: list[dict[str, object]], said: str) -> None:
    shown, config = watch(tmp_path)
    folder = tmp_path / config.experiment / config.id
    folder.mkdir(parents=True)
    folder.joinpath("metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    row = shown._last_row(config.id)
    assert row is not None
    assert shown._line(config.id, row) == f"{config.label}, seed 0: {said}"


def test_how_long_a_run_is_may_be_for_its_data_to_tell(tmp_path: Path) -> None:
    changes = ["stream={name='split_series'}"]
    config = load("permuted-mnist", changes)[1].runs("permuted-mnist")[0]
    line = Watch([config], tmp_path, quiet=True)._line(config.id, {"step": 10, "loss": 0.5})
    assert line.endswith("step 10/?, loss 0.5000")


def test_nothing_is_said_before_the_first_loss(tmp_path: Path) -> None:
    shown, config = watch(tmp_path)
    assert shown._last_row(config.id) is None
