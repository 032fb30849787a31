"""Compiles the kernels when attractor is installed; ``python hatch_build.py`` does so in place.

Without a compiler the install goes on without them, and everything runs on the reference path.
``python hatch_build.py wheels`` makes the wheels of all machines in ``dist``, on any of them: Zig
compiles for each, against a C library as old as the wheel's platform promises.
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
MACHINE = "ATTRACTOR_WHEEL_FOR"
"""The environment variable that names the machine of a wheel to be given to others."""
GLIBC = (2, 17)
"""The oldest C library on Linux that such a wheel runs with."""


def compile_library(
    root: Path, target: Path, compiler: list[str], machine: str, only: tuple[str, ...] = ()
) -> None:
    """Compile each file, the cells once per instruction set (or `only` for some), and link them."""
    source = root / PACKAGE / "native"
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
            run([*compiler, *FLAGS, *flags, "-c", str(file), "-o", made])
            return made

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(lambda one: compile_one(*one), reversed(work)))
        made = f"{folder}/{target.name}"
        run([*compiler, "-shared", "-pthread", "-s", *objects, "-o", made])
        shutil.copy(made, target.with_suffix(".part"))
        target.with_suffix(".part").replace(target)


def here() -> str:
    """The machine that this runs on, by the name that wheels have for it."""
    machine = platform.machine()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(machine.lower(), machine)


def compiler_for(machine: str) -> list[str]:
    """Zig's compiler for a machine that may be another than this."""
    target = f"{machine}-linux-gnu.{'.'.join(map(str, GLIBC))}"
    return [sys.executable, "-m", "ziglang", "c++", "-target", target]


def wheels(root: Path) -> None:
    """Build a wheel for each machine that has paths of its own."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"]
    for machine in PATHS:
        environment = {**os.environ, MACHINE: machine}
        subprocess.run(build, check=True, cwd=root, env=environment)  # noqa: S603


def run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603


class CustomBuildHook(BuildHookInterface):
    """Puts the library beside the package's files, in a wheel and in an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root, machine = Path(self.root), os.environ.get(MACHINE)
        if machine is not None:
            self._for_others(root, machine, build_data)
            return
        compiler = os.environ.get("CXX") or shutil.which("c++")
        if compiler is None:
            self.app.display_warning("no C++ compiler: attractor goes without its kernels")
            return
        try:
            compile_library(root, root / LIBRARY, [compiler], here())
        except (OSError, subprocess.CalledProcessError) as error:
            reason = getattr(error, "stderr", "") or error
            self.app.display_warning(f"attractor goes without its kernels: {reason}")
            return
        build_data["artifacts"].append(f"/{LIBRARY}")
        _name(build_data, re.sub("[-.]", "_", sysconfig.get_platform()))

    def _for_others(self, root: Path, machine: str, build_data: dict[str, Any]) -> None:
        """A wheel for a kind of machine; one without kernels is an error."""
        if machine not in PATHS:
            self.app.abort(f"expected {MACHINE} to be one of {', '.join(PATHS)}, got {machine}")
        # not where this machine's own library is
        self.made = tempfile.TemporaryDirectory()
        library = Path(self.made.name) / LIBRARY.name
        try:
            compile_library(root, library, compiler_for(machine), machine)
        except subprocess.CalledProcessError as error:
            self.app.abort(f"the kernels for {machine} do not compile: {error.stderr}")
        build_data["force_include"][str(library)] = str(LIBRARY.relative_to("src"))
        _name(build_data, "_".join(["manylinux", *map(str, GLIBC), machine]))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "made"):
            self.made.cleanup()


def _name(build_data: dict[str, Any], platform: str) -> None:
    """Name a wheel: for any Python, but for one kind of machine."""
    build_data["pure_python"] = False
    build_data["tag"] = f"py3-none-{platform}"


if __name__ == "__main__":
    top = Path(__file__).parent
    if sys.argv[1:] == ["wheels"]:
        wheels(top)
    else:
        compile_library(
            top, top / LIBRARY, [os.environ.get("CXX", "c++")], here(), tuple(sys.argv[1:])
        )
        print(top / LIBRARY)
