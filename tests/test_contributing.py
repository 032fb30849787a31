"""The cell in CONTRIBUTING.md is a real one: typed, and through the contract by the edits named."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TABLE = "src/attractor/cells/table.py"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository after the edits."""
    copy = tmp_path_factory.mktemp("edited")
    skip = shutil.ignore_patterns("__pycache__")
    for folder in ("src", "tests/contracts"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=skip)
    for name in ("pyproject.toml", "tests/conftest.py"):
        shutil.copy(ROOT / name, copy / name)
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (line,) = re.findall(rf"\*\*A line\*\* in `CELLS` in `{TABLE}`: `(.*)`\.", text)
    (path,) = re.findall(r"\*\*A file\*\* `([^`]+)`", text)
    (copy / path).write_text(code, encoding="utf-8")
    table = (copy / TABLE).read_text(encoding="utf-8")
    table = table.replace("\nCELLS:", "from attractor.cells.min_gru import MinGRUCell\n\nCELLS:")
    (copy / TABLE).write_text(re.sub(r"(CELLS: .* = \{\n)", rf"\1    {line},\n", table))
    return copy


def run(edited: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(edited / "src"), "PATH": ""}
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=edited,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_passes_the_contract_but_for_its_frozen_names(edited: Path) -> None:
    tests = ("tests/contracts/test_cells.py", "tests/contracts/test_cell_forms.py")
    done = run(edited, "pytest", "-q", "-k", "min_gru", "-p", "no:cacheprovider", *tests)
    failed = re.findall(r"^FAILED \S+::(\w+)", done.stdout, re.MULTILINE)
    assert failed == ["test_state_dict_names_are_frozen"], done.stdout
    found = re.search(r"(\d+) passed", done.stdout)
    assert found
    assert int(found[1]) >= 25


def test_it_is_typed(edited: Path) -> None:
    done = run(edited, "mypy", "--strict", "src/attractor/cells/min_gru.py")
    assert done.returncode == 0, done.stdout


def test_its_layer_is_there_by_name(edited: Path) -> None:
    code = "import attractor, torch; print(attractor.MinGRU(3, 4)(torch.ones(2, 1, 3))[0].shape)"
    environment = {"PYTHONPATH": str(edited / "src")}
    shown = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    assert shown.strip() == "torch.Size([2, 1, 4])"
