"""`make mutants-native`: changes lines of the kernels, one at a time, and sees that tests fail.

The lines are in ``native.toml``. Each is changed in a copy of the package, whose library is
compiled for this processor's path alone; half a minute later the tests that should notice have run.

    python tests/mutation/native.py [--only PART]
"""

import argparse
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

BUILD: Any = importlib.import_module("hatch_build")
NATIVE: Path = BUILD.PACKAGE / "native"
TESTS = ROOT / "tests"


@dataclass(frozen=True)
class Line:
    """A change of one line.

    Args:
        path: below ``native``.
        before: what is there, once.
        after: what is there instead.
        tests: below ``tests``, with a word that their names have, if it is not all of them.
        word: that word, as ``pytest -k`` has it.
    """

    path: str
    before: str
    after: str
    tests: tuple[str, ...]
    word: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.before} -> {self.after or 'nothing'}"

    def changed(self, root: Path) -> None:
        """Change the line in a copy of the package."""
        file = root / NATIVE / self.path
        text = file.read_text(encoding="utf-8")
        if text.count(self.before) != 1:
            raise LookupError(
                f"native.toml expects {self.before!r} once in {self.path}, and it is there "
                f"{text.count(self.before)} times. If the code has changed, say what it is now."
            )
        file.write_text(text.replace(self.before, self.after), encoding="utf-8")


def lines() -> list[Line]:
    """All that there are."""
    text = Path(__file__).with_name("native.toml").read_text(encoding="utf-8")
    return [Line(**{**one, "tests": tuple(one["tests"])}) for one in tomllib.loads(text)["line"]]


def noticed(line: Line, root: Path, path: str) -> bool:
    """Whether a test fails when the line is changed in that copy of the package."""
    line.changed(root)
    compiler = os.environ.get("CXX") or shutil.which("c++") or "c++"
    BUILD.compile_library(root, root / BUILD.LIBRARY, [compiler], BUILD.here(), (path,))
    files = [str(TESTS / name) for name in line.tests]
    chosen = ["-k", line.word] if line.word else []
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:xdist", *files, *chosen]
    found = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    if found.returncode > 1:
        raise RuntimeError(f"the tests of {line} do not run:\n{found.stdout[-2000:]}")
    return found.returncode == 1


def main() -> int:
    """Change one line after the other, and say which changes no test notices."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default="", help="lines of files whose path has this in it")
    only = parser.parse_args().only
    from attractor.cells.kernels.native import STATUS

    path = STATUS.path
    if path is None:
        print("the kernels are off, so that their tests notice nothing.")
        return 1
    survived, since = 0, time.monotonic()
    todo = [line for line in lines() if only in line.path]
    for line in todo:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            shutil.copytree(ROOT / "src", root / "src")
            if not noticed(line, root, path):
                survived += 1
                print(f"survived: {line}", flush=True)
    print(f"{len(todo)} lines, {len(todo) - survived} noticed, {time.monotonic() - since:.0f} s")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
