"""Compiles the kernels when attractor is installed; ``python hatch_build.py`` does so in place.

Without a compiler the install goes on without them, and everything runs on the reference path.
"""

import os
import platform
import re
import shutil
import subprocess  # the compiler
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by hand
    BuildHookInterface = object

PACKAGE = Path("src/attractor/cells/kernels")
LIBRARY = PACKAGE / "libattractor.so"
COMMON = ("library", "memory", "threads")
OPTIMISE = "-O2 -fno-math-errno -fno-trapping-math -ffp-contract=fast"
FLAGS = f"-std=gnu++17 -fPIC -fvisibility=hidden -pthread {OPTIMISE}".split()
PATHS: dict[str, dict[str, list[str]]] = {
    "x86_64": {
        "avx512": ["-mavx512f", "-mavx512dq", "-mavx512vl", "-mfma", "-mprefer-vector-width=512"],
        "avx2": ["-mavx2", "-mfma"],
        "plain": [],
    },
    "aarch64": {"neon": [], "plain": []},
}


def compile_library(root: Path, compiler: str, only: tuple[str, ...] = ()) -> Path:
    """Compile each file, the cells once per instruction set (or `only` for some), and link them."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(
        platform.machine().lower(), platform.machine()
    )
    source, target = root / PACKAGE / "native", root / LIBRARY
    with tempfile.TemporaryDirectory() as folder:
        paths = {
            name: flags
            for name, flags in PATHS.get(machine, {"plain": []}).items()
            if not only or name in (*only, "plain")
        }
        known = [f"-DATTRACTOR_{name.upper()}" for name in paths]
        work = [(name, source / f"{name}.cpp", known) for name in COMMON] + [
            (name, source / "path.cpp", [f"-DATTRACTOR_PATH={name}", *flags])
            for name, flags in paths.items()
        ]

        def compile_one(name: str, file: Path, flags: list[str]) -> str:
            made = f"{folder}/{name}.o"
            run([compiler, *FLAGS, *flags, "-c", str(file), "-o", made])
            return made

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(lambda one: compile_one(*one), reversed(work)))
        made = f"{folder}/{target.name}"
        run([compiler, "-shared", "-pthread", "-s", *objects, "-o", made])
        shutil.copy(made, target.with_suffix(".part"))
        target.with_suffix(".part").replace(target)
    return target


def run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603


class CustomBuildHook(BuildHookInterface):
    """Puts the library beside the package's files, in a wheel and in an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        compiler = os.environ.get("CXX") or shutil.which("c++")
        if compiler is None:
            self.app.display_warning("no C++ compiler: attractor goes without its kernels")
            return
        try:
            library = compile_library(Path(self.root), compiler)
        except (OSError, subprocess.CalledProcessError) as error:
            reason = getattr(error, "stderr", "") or error
            self.app.display_warning(f"attractor goes without its kernels: {reason}")
            return
        build_data["artifacts"].append(f"/{library.relative_to(self.root)}")
        build_data["pure_python"] = False
        # for any Python, but for one kind of machine
        build_data["tag"] = f"py3-none-{re.sub('[-.]', '_', sysconfig.get_platform())}"


if __name__ == "__main__":
    print(compile_library(Path(__file__).parent, os.environ.get("CXX", "c++"), tuple(sys.argv[1:])))
