"""Type checkers and editors know the named layers as they are."""

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import attractor
from attractor.cells import LAYERS
from contracts.stubs import PATH, stub

USER = """
import torch
import attractor

layer = attractor.LSTM(28, 128, 2, True, True, 0.5, True, 64, peepholes=True, t_max=784)
layer.load_state_dict(torch.nn.LSTM(28, 128).state_dict())
attractor.RNN(3, 4, 1, "relu", dtype=torch.float64)
attractor.NTM(3, 4, controller="gru", generator=torch.Generator())
reveal_type(layer)
reveal_type(attractor.EURNN(3, 4).input_size)
"""
WRONG = {
    "attractor.LSTM(3, 4, forgetbias=1.0)": 'Unexpected keyword argument "forgetbias" for "LSTM"',
    "attractor.GRU(3, 4, reset='later')": "incompatible type \"Literal['later']\"",
    "attractor.GRU(3)": 'Missing positional argument "hidden_size"',
    "attractor.LSMT(3, 4)": 'Module has no attribute "LSMT"',
}


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
    path = tmp_path / "user.py"
    path.write_text(USER + "\n".join(WRONG))
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(path)]
    cache = Path.cwd() / ".mypy_cache"
    done = subprocess.run(
        [*command, "--cache-dir", str(cache)], capture_output=True, text=True, check=False
    )
    told = done.stdout.splitlines()
    assert 'Revealed type is "attractor.cells.layer.named.LSTM"' in told[0]
    assert 'Revealed type is "int"' in told[1]
    errors = [line for line in told if ": error: " in line]
    for number, (found, text) in enumerate(zip(errors, WRONG.values(), strict=True)):
        assert f"user.py:{USER.count(chr(10)) + 1 + number}: error: " in found
        assert text in found
