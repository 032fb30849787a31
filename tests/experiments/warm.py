"""Commands in processes of their own that need not import torch anew: forks of one that has."""

import atexit
import json
import os
import pkgutil
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

EARLY = ("ATTRACTOR_KERNELS", "OMP_NUM_THREADS")
"""What is read when libraries are imported."""


class Process:
    """``attractor ARGUMENTS`` in a process group of its own, as `subprocess.Popen` has it."""

    def __init__(self, arguments: list[str], environment: Mapping[str, str], cwd: Path) -> None:
        self._server = _server(tuple((name, environment.get(name, "")) for name in EARLY))
        self._folder = Path(tempfile.mkdtemp())
        self.returncode: int | None = None
        asked = [arguments, dict(environment), str(cwd), str(self._folder)]
        self.pid: int = self._server.asked(asked)

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._server.asked(self.pid)
        return self.returncode

    def wait(self, timeout: float = 120) -> int:
        end = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("attractor", timeout)
            time.sleep(0.01)
        return code

    def communicate(self, timeout: float = 120) -> tuple[str, str]:
        self.wait(timeout)
        said = (self._folder / "out").read_text(), (self._folder / "err").read_text()
        shutil.rmtree(self._folder)
        return said


class Server:
    """The process that has imported all, and is forked."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        tests = str(Path(__file__).parents[1])
        code = (
            f"import sys; sys.path.insert(0, {tests!r}); from experiments import warm; warm.serve()"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        atexit.register(self.close)

    def asked(self, question: object) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(question), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@cache
def _server(early: tuple[tuple[str, str], ...]) -> Server:
    return Server(os.environ | {name: told for name, told in early if told})


def serve() -> None:
    """Start the command that a line asks for, or say how the process that it names has ended."""
    import attractor.cli as commands

    for module in pkgutil.iter_modules(commands.__path__, "attractor.cli."):
        if module.name != "attractor.cli.__main__":
            import_module(module.name)
    for line in sys.stdin:
        match json.loads(line):
            case int(child):
                ended, status = os.waitpid(child, os.WNOHANG)
                told = os.waitstatus_to_exitcode(status) if ended else None
            case question:
                told = _started(*question)
        print(json.dumps(told), flush=True)


def _started(arguments: list[str], environment: dict[str, str], cwd: str, folder: str) -> int:
    ready, tell = os.pipe()
    if child := os.fork():
        os.close(tell)
        os.read(ready, 1)  # its end: the child has a group of its own
        os.close(ready)
        return child
    os.setsid()
    for stream, name in enumerate((os.devnull, f"{folder}/out", f"{folder}/err")):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), stream)
    os.close(tell)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["attractor", *arguments]
    code: object = 0
    try:
        runpy.run_module("attractor.cli", run_name="__main__")
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else code is not None)
