"""The files of experiments as they are written: TOML, each laid over the one that it stands on.

What checks them is imported with `attractor.experiments.config`: a list of names needs none of it.
"""

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from attractor.errors import InputError, shortened
from attractor.experiments.changes import laid_over
from attractor.toml import parsed

VERSION = 2
"""The newest form of configuration file that this release reads."""

TABLES = ("task", "stream", "features", "model", "optimiser", "strategy", "meta", "train")
"""What a configuration may say of a run, in the order of a file."""

EXPERIMENTS: dict[str, Path] = {
    path.stem: path for path in sorted((Path(__file__).parent / "configs").glob("*.toml"))
}
"""One configuration file for each experiment that comes with attractor."""


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file of a version that this release knows."""
    try:
        text = path.read_bytes()
    except (OSError, ValueError) as error:  # a name may hold what no file's name can
        why = getattr(error, "strerror", error)
        raise InputError(
            f"expected a configuration file at {path}, but got: {why}. "
            "Try `attractor list experiments` for those that come with attractor."
        ) from error
    try:
        content = parsed(text.decode())
    except ValueError as error:
        raise InputError(
            f"expected {path} to be TOML, but got a syntax error: {error}. "
            "Strings need quotes, and tables look like [task]."
        ) from error
    version = content.get("version", VERSION)
    if isinstance(version, int) and version > VERSION:
        raise InputError(
            f"expected {path} to be of version {VERSION} or older, but it is of version {version}. "
            "Try a newer attractor: pip install --upgrade attractor."
        )
    if version == 1:
        raise InputError(
            f"expected {path} to be of version {VERSION}, but it is of version 1, in which tables "
            "have other names. See docs/experiments.md for the new ones."
        )
    return content


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
