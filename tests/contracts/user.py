"""A user's own file, and what mypy --strict says of it."""

import subprocess
from pathlib import Path

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


def check(python: str | Path, folder: Path, cache: Path) -> None:
    """Have an environment's mypy read the file in a folder that knows nothing of attractor's."""
    path = folder / "user.py"
    path.write_text(USER + "\n".join(WRONG))
    command = [str(python), "-m", "mypy", "--strict", "--config-file=", str(path)]
    done = subprocess.run(
        [*command, "--cache-dir", str(cache)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    told = done.stdout.splitlines()
    assert 'Revealed type is "attractor.cells.layer.named.LSTM"' in told[0], done.stdout
    assert 'Revealed type is "int"' in told[1]
    errors = [line for line in told if ": error: " in line]
    for number, (found, text) in enumerate(zip(errors, WRONG.values(), strict=True)):
        assert f"user.py:{USER.count(chr(10)) + 1 + number}: error: " in found
        assert text in found
