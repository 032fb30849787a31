"""Type checkers and editors know the named layers as they are."""

import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

import attractor
from attractor.cells import LAYERS
from contracts.stubs import PATH, stub
from contracts.user import check


def test_stub_is_up_to_date() -> None:
    assert PATH.read_text() == stub(), "the layers have changed; run make stubs"


def test_signatures_are_shown() -> None:
    lstm: Any = attractor.LSTM
    names = list(inspect.signature(lstm).parameters)
    assert names[:3] == ["input_size", "hidden_size", "num_layers"]
    assert names[6:10] == ["bidirectional", "proj_size", "device", "dtype"]
    assert {"t_max", "peepholes", "generator"} < set(names)
    assert "cell_options" not in names
    for layer in LAYERS.values():
        assert layer.__doc__
        assert ".. math::" in layer.__doc__


@pytest.mark.slow
def test_code_of_a_user_is_checked(tmp_path: Path) -> None:
    """With mypy --strict, in a folder of the user's own."""
    check(sys.executable, tmp_path, Path.cwd() / ".mypy_cache")
