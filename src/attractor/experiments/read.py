"""Experiments read from TOML files, with what the command line changes in them."""

from collections.abc import Iterable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from attractor.errors import InputError, shortened
from attractor.experiments.changes import changed, laid_over, resized
from attractor.experiments.config import TABLES, ExperimentConfig, read_toml, validated


def read(path: Path, changes: Iterable[str] = ()) -> ExperimentConfig:
    """Read an experiment from a TOML file, with ``a.b=value`` changes."""
    content = with_bases(path)
    changes = list(changes)
    new = changed(content, changes) if changes else content
    over = changed({}, changes)
    tables = {name: table for name, table in over.items() if name in TABLES}
    check_budget(content.get("budget"), new.get("budget"))
    # the tables stay as the file has them: changes come last, after what a variant says
    own = {name: content.get(name, {}) for name in tables}
    experiment = validated(ExperimentConfig, {**new, **own, "changes": tables}, path.name)
    if experiment.budget == "full" and resized(content, tables):
        return experiment.model_copy(update={"budget": "changed"})
    return experiment


def with_bases(path: Path) -> dict[str, Any]:
    """A file laid over the one of the same folder that it names as its base, and so on."""
    content = read_toml(path)
    bases: list[str] = [path.name]
    while "base" in content:
        base = content.pop("base")
        if not isinstance(base, str) or Path(base).name != base or base in ("", ".", ".."):
            raise InputError(
                f"expected the base of {bases[-1]} to be the name of a file beside it, but got "
                f"{shortened(base)}. Try such as 'demo.toml'."
            )
        bases.append(base)
        if base in bases[:-1]:
            raise InputError(
                f"expected files that end at one without a base, but got {' -> '.join(bases)}. "
                "Remove one of these bases."
            )
        below = _base(path.with_name(base), without="variant" if "variant" in content else "")
        tables = {k: v for k, v in content.items() if k in TABLES and isinstance(v, dict)}
        rest = {k: v for k, v in content.items() if k not in tables}
        plain = {k: v for k, v in below.items() if isinstance(v, dict) or k not in tables}
        content = {**laid_over(plain, tables), **rest}
    return content


def _base(path: Path, *, without: str) -> dict[str, Any]:
    """A file on which others stand, which is read once for all of them, but for a part."""
    stamp = path.stat().st_mtime_ns if path.exists() else 0
    found = _read_once(path, stamp)
    return deepcopy({name: part for name, part in found.items() if name != without})


@cache
def _read_once(path: Path, stamp: int) -> dict[str, Any]:
    return read_toml(path)


def check_budget(own: object, asked: object) -> None:
    """What ``--set`` says of the budget may not promise more than the file does."""
    order = ["quick", "changed", "full"]
    if asked in order[1:] and asked != own and order.index(str(asked)) > _place(own, order):
        raise InputError(
            f"expected the budget of the file ({own}) or a smaller one, but got budget={asked}, "
            "which its runs would not have. Try the experiment without -quick in its name."
        )


def _place(own: object, order: list[str]) -> int:
    return order.index(own) if isinstance(own, str) and own in order else -1
