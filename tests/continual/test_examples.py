"""The examples run, and are as short as they say."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("continual_*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(path))
    assert capsys.readouterr().out


def test_there_are_two() -> None:
    assert len(EXAMPLES) == 2
