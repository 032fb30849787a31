"""``attractor doctor``: what is installed, and what to do about what is missing."""

import json
import platform
import re
import shutil
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Annotated

import typer

TOOLS = ("build", "dev", "docs")
"""Extras for those who change attractor itself."""


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False) -> None:
    """Say what is installed here, and how to get what is missing.

    Versions, device, threads, data root and browser.
    """
    from attractor.cli.tables import table

    rows = [*_machine(), *_packages(), *_data(), *_browser()]
    if as_json:
        typer.echo(json.dumps([{"what": w, "found": f, "advice": a} for w, f, a in rows], indent=1))
        return
    table(["what", "found", "what to do"], rows)


def _machine() -> list[tuple[str, str, str]]:
    import torch

    from attractor.cells.kernels import STATUS

    devices = [f"cuda ({torch.cuda.get_device_name()})"] if torch.cuda.is_available() else []
    compiler = shutil.which("c++")
    devices += ["mps"] if torch.backends.mps.is_available() else []
    return [
        ("python", platform.python_version(), ""),
        ("device", ", ".join([*devices, "cpu"]), "" if devices else "all works on the CPU"),
        ("threads", f"{torch.get_num_threads()} ({platform.machine()})", ""),
        ("kernels", str(STATUS), STATUS.advice),
        ("compiler", compiler or "none", _unless(compiler, "train.compile needs one")),
    ]


def _packages() -> list[tuple[str, str, str]]:
    rows = []
    for name, extra in _wanted().items():
        try:
            rows.append((name, version(name), ""))
        except PackageNotFoundError:
            rows.append((name, "not installed", f'pip install "attractor[{extra}]"'))
    return rows


def _wanted() -> dict[str, str]:
    """Packages, and which extra brings each: one for users, where there is one."""
    found = {"attractor": ""}
    for requirement in requires("attractor") or []:
        name, _, condition = requirement.partition(";")
        name = re.split(r"[^\w.-]", name.strip(), maxsplit=1)[0]
        _, _, extra = condition.partition("extra == ")
        extra = extra.strip("'\" ")
        if name not in found or found[name] in TOOLS:
            found[name] = extra
    return found


def _data() -> list[tuple[str, str, str]]:
    from attractor.tasks.data import DATASETS, data_root, verify

    root = data_root()
    rows = [("data root", str(root), _unless(root.is_dir(), "set ATTRACTOR_DATA, or use --data"))]
    for name in DATASETS:
        parts: dict[str, list[str]] = {}
        for one in verify(name, root):
            parts.setdefault(one.state, []).append(one.part)
        advice = _unless(parts.keys() == {"ok"}, f"attractor data fetch {name}")
        rows.append((f"data: {name}", _states(parts), advice))
    return rows


def _states(parts: Mapping[str, Sequence[str]]) -> str:
    """The state of all files of a data set, or which are in which where they differ.

    Example:
        >>> _states({"ok": ["images", "labels"]})
        'ok'
        >>> _states({"missing": ["images"], "ok": ["labels"]})
        'missing: images; ok: labels'
    """
    if len(parts) == 1:
        return next(iter(parts))
    return "; ".join(f"{state}: {', '.join(parts[state])}" for state in sorted(parts))


def _browser() -> list[tuple[str, str, str]]:
    found = shutil.which("chromium") or shutil.which("google-chrome")
    return [("browser", found or "none", _unless(found, "the report's own tests need chromium"))]


def _unless(fine: object, advice: str) -> str:
    return "" if fine else advice
