"""Wheels as they are given to others: built, read, installed and used."""

import json
import os
import re
import struct
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from contracts.user import check

ROOT = Path(__file__).parents[2]
LIBRARY = "attractor/cells/kernels/libattractor.so"
MACHINES = {"x86_64": 62, "aarch64": 183}
"""What the header of an ELF file has for each."""
OPTIONAL = """
alembic, matplotlib, mlflow, optuna, PIL, prodigyopt, ray, schedulefree, sklearn, submitit
tensorboard, wandb
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def run(*command: object, **environment: str) -> str:
    """What a command prints, in an environment that knows nothing of this source tree."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(one) for one in command],
        env=kept | {"PIP_CONSTRAINT": str(ROOT / "constraints.txt")} | environment,
        cwd=environment.get("HOME", ROOT),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def test_all_of_a_wheel_in_a_clean_environment(tmp_path: Path) -> None:
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, ROOT)
    (wheel,) = tmp_path.glob("attractor-*.whl")
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    everything = f"attractor[all] @ {wheel.as_uri()}"
    run(python, "-m", "pip", "install", "-q", everything, "mypy")
    run(python, "-m", "pip", "check")

    attractor = python.with_name("attractor")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert run(attractor, "--version", HOME=str(tmp_path)) == f"attractor {version}\n"
    names = ", ".join(re.findall(r"\w+", OPTIONAL))
    where = run(python, "-c", f"import {names}, attractor; print(attractor.__file__)")
    assert Path(where.strip()).is_relative_to(tmp_path / "venv")
    told = json.loads(run(attractor, "doctor", "--json"))
    missing = {row["advice"] for row in told if row["found"] == "not installed"}
    assert missing <= {f'pip install "attractor[{own}]"' for own in ("build", "dev", "docs")}
    (kernels,) = (row for row in told if row["what"] == "kernels")
    assert kernels["advice"] == ""
    ended = json.loads(
        run(attractor, "run", "demo", "--only", "LSTM", "--seeds", "0", "--set", "train.steps=5",
            "--out", tmp_path / "runs", "--json")
    )  # fmt: skip
    assert ended[0]["status"] == "done"
    check(python, tmp_path, tmp_path / "cache")


@pytest.mark.parametrize("machine", MACHINES)
def test_wheel_for_each_machine(machine: str, tmp_path: Path) -> None:
    pytest.importorskip("ziglang", reason="make wheels installs it")
    own = ROOT / "src" / LIBRARY
    before = own.read_bytes() if own.exists() else None
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path]
    run(*build, ATTRACTOR_WHEEL_FOR=machine)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith(f"-py3-none-manylinux_2_17_{machine}.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        library = opened.read(LIBRARY)
    assert {"attractor/py.typed", "attractor/cells/layer/named.pyi"} <= names
    assert library[:5] == b"\x7fELF\x02"
    assert struct.unpack_from("<H", library, 18) == (MACHINES[machine],)
    asked = {(int(a), int(b)) for a, b in re.findall(rb"GLIBC_(\d+)\.(\d+)", library)}
    assert max(asked) <= (2, 17)
    assert b"libstdc++" not in library, "which may be older where it is installed"
    assert (own.read_bytes() if own.exists() else None) == before
