"""Runs tests in forks of a process that has torch at hand, each with one file changed."""

import ast
import importlib.machinery
import importlib.util
import os
import resource
import sys
import tempfile
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from mutation.operators import Mutant

FLAGS = (
    *("-x", "-q", "-m", "not slow", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist"),
    "--timeout=0",  # on the clock, a busy machine would fail tests; `run` limits processor seconds
)


@dataclass(frozen=True)
class Job:
    """Tests to run, with one module replaced by a mutant (or none, to see that they pass)."""

    name: str
    tests: tuple[str, ...]
    path: Path | None = None
    mutant: Mutant | None = None


@dataclass(frozen=True)
class Outcome:
    """How it went: pytest's exit code, seconds of a processor, what was printed."""

    job: Job
    code: int
    seconds: float
    printed: str


class _Changed(importlib.machinery.SourceFileLoader):
    """Loads a module from a tree in the place of its file."""

    def __init__(self, name: str, path: str, tree: ast.Module) -> None:
        super().__init__(name, path)
        self.tree = tree

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.tree, self.path, "exec", dont_inherit=True)


class _Finder:
    """Finds one module, before all other finders do."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self.name, self.path, self.tree = name, str(path), tree

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> Any:
        if name != self.name:
            return None
        loader = _Changed(name, self.path, self.tree)
        return importlib.util.spec_from_file_location(name, self.path, loader=loader)


def run(jobs: Iterable[Job], root: Path, *, limit: int, workers: int) -> Iterator[Outcome]:
    """The outcome of each job, in the order in which they end.

    One that needs more than `limit` seconds of a processor is ended. Seconds on the clock would
    depend on what else the machine does.
    """
    waiting = list(jobs)
    running: dict[int, tuple[Job, Any]] = {}
    while waiting or running:
        while waiting and len(running) < workers:
            job, said = waiting.pop(0), tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
            running[_fork(job, root, said.fileno(), limit)] = (job, said)
        pid, status, used = os.wait4(-1, 0)
        job, said = running.pop(pid)
        said.seek(0)
        seconds = used.ru_utime + used.ru_stime
        yield Outcome(job, os.waitstatus_to_exitcode(status), seconds, said.read())
        said.close()


def _fork(job: Job, root: Path, output: int, limit: int) -> int:
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    os.dup2(output, 1)
    os.dup2(output, 2)
    code: int = 70
    try:
        code = _test(job, root)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _test(job: Job, root: Path) -> int:
    import pytest

    os.chdir(root)
    if job.path is not None and job.mutant is not None:
        inside = job.path.relative_to(root / "src").with_suffix("")
        finder: Any = _Finder(".".join(inside.parts), job.path, job.mutant.tree)
        sys.meta_path.insert(0, finder)
    return int(pytest.main([*FLAGS, *_paths(job.tests)]))


def _paths(tests: Sequence[str]) -> list[str]:
    return [f"tests/{test}" for test in tests]
