"""What a run folder says of its run."""

from pathlib import Path
from typing import Any

import pytest

from attractor.runs.read import Run


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, "test"),
        ({"split": "test"}, "test"),
        ({"split": "valid"}, "valid"),
        ({"split": 3}, "test"),
    ],
)
def test_a_run_says_whose_data_its_last_numbers_are_of(said: dict[str, Any], expected: str) -> None:
    assert Run(Path(), {}, (), {}, said, "done").split == expected
