"""Where a run ran: what bitwise equality depends on, and what a reader wants to know."""

import hashlib
import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from attractor.runs.folder import write_json

ENVIRONMENT = "environment.json"
PACKAGES = ("attractor", "torch", "numpy", "safetensors")
DECISIVE = (
    *PACKAGES,
    *("commit", "source", "python", "system", "cpu", "processor", "threads", "data"),
)
"""What may move the numbers of a run."""


def environment(threads: int) -> dict[str, Any]:
    """What there is here and now."""
    import torch

    return {
        **{name: version(name) for name in PACKAGES},
        **code(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu(),
        "processor": torch.backends.cpu.get_cpu_capability(),
        "threads": threads,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "command": shlex.join(["attractor", *sys.argv[1:]]) if _is_ours(sys.argv[0]) else "",
    }


@cache
def code() -> dict[str, str]:
    """The code that runs: a hash of the package, weights too, and in a checkout the commit."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    files = (path for path in package.rglob("*") if path.is_file())
    for path in sorted(one for one in files if "__pycache__" not in one.parts):
        digest.update(path.relative_to(package).as_posix().encode())
        digest.update(path.read_bytes())
    found = {"source": digest.hexdigest()[:16]}
    root = package.parents[1]
    if (root / ".git").exists() and (root / "pyproject.toml").exists():
        commit = _git(root, "rev-parse", "HEAD")
        changed = " and changes" if _git(root, "status", "--porcelain", "--", "src") else ""
        found |= {"commit": f"{commit}{changed}"} if commit else {}
    return found


def record(folder: Path, here: Mapping[str, Any], step: int | None) -> list[str]:
    """Write where a run runs; what runs of it were elsewhere stays written.

    Args:
        folder: of the run.
        here: its environment now.
        step: at which it is taken up, or None if it starts.

    Returns:
        What differs from where it ran last.
    """
    path = folder / ENVIRONMENT
    first = read(folder) if step is not None else {}
    if not first:
        write_json(path, dict(here))
        return []
    before = segments(first)
    resumed = [*before[1:], {"step": step, **here}]
    write_json(path, {**before[0], "resumed": resumed})
    return differences(before[-1], here)


def read(folder: Path) -> dict[str, Any]:
    """What `record` wrote, or nothing."""
    try:
        found = json.loads((folder / ENVIRONMENT).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def segments(environment: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Where a run started, and wherever it was taken up, in order.

    Example:
        >>> segments({"torch": "2.9", "resumed": [{"step": 20, "torch": "2.10"}]})
        [{'torch': '2.9'}, {'step': 20, 'torch': '2.10'}]
    """
    first = dict(environment)
    resumed = first.pop("resumed", [])
    more = resumed if isinstance(resumed, list) else []
    return [first, *(one for one in more if isinstance(one, dict))]


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """What may move numbers and is not the same, where both say it.

    Example:
        >>> differences({"torch": "2.9", "threads": 1}, {"torch": "2.10", "threads": 1})
        ['torch 2.9 and 2.10']
    """
    both = [name for name in DECISIVE if name in one and name in other]
    if one.get("source") is not None and one.get("source") == other.get("source"):
        both.remove("commit") if "commit" in both else None  # other files than the package's
    return [f"{name} {one[name]} and {other[name]}" for name in both if one[name] != other[name]]


def mixed(environments: Iterable[Mapping[str, Any]]) -> str:
    """One sentence if runs that are averaged come from several versions of the code, or none.

    Example:
        >>> mixed([{"attractor": "0.1.0", "source": "a"}, {"attractor": "0.2.0", "source": "b"}])
        'runs of different versions are shown together: attractor 0.1.0 and 0.2.0'
        >>> mixed([{"attractor": "0.1.0"}, {"attractor": "0.1.0"}])
        ''
    """
    each = [one for environment in environments for one in segments(environment)]
    known = all("source" in one for one in each)  # then a commit of docs alone is no other version
    for name in ("attractor", "source" if known else "commit", "torch"):
        found = sorted({str(one[name]) for one in each if name in one})
        if len(found) > 1:
            return f"runs of different versions are shown together: {name} {' and '.join(found)}"
    return ""


def _is_ours(program: str) -> bool:
    """Whether a program is ours: the command, or the package run as one."""
    path = Path(program)
    return path.stem == "attractor" or path.parent.name in ("attractor", "cli")


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


@cache
def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()
