"""Any cell, optimiser and strategy go together by name, as a user would try it."""

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.helpers import called


@pytest.mark.parametrize(
    ("experiment", "only", "changes", "labels", "seed"),
    [
        ("demo", "LSTM", ["optimiser=anytime", "train.steps=20"], 1, 0),
        ("demo-continual", "GEM", ["optimiser=mtl2l", "train.steps=10"], 1, 0),
        ("demo-optimisers", None, ["model.cell=nru", "train.steps=10"], 5, 0),
        ("demo-optimisers", "DMSGD", ["model.cell=nru", "train.steps=10"], 1, 2),  # exploded once
    ],
)
@pytest.mark.timeout(300)
def test_by_the_command(
    experiment: str, only: str | None, changes: list[str], labels: int, seed: int, tmp_path: Path
) -> None:
    asked = [word for change in changes for word in ("--set", change)]
    chosen = ["--only", only] if only else []
    done = called(
        *("run", experiment, *chosen, *asked, "--seeds", str(seed), "--out", str(tmp_path)),
        *("--json", "-q", "-j", "1"),
    )
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    assert {row["status"] for row in rows} == {"done"}
    assert len({row["label"] for row in rows}) == labels
    assert all(0 <= row["outcome"]["test"]["accuracy"] <= 1 for row in rows)
