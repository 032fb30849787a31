"""TOML, as far as a configuration goes."""

import tomllib
from typing import Any

DEEPEST = 20
"""Tables in tables beyond which a file is no configuration."""


def parsed(text: str) -> dict[str, Any]:
    """TOML of a depth that a configuration can have; `ValueError` for all else."""
    try:
        content = tomllib.loads(text)
    except RecursionError:
        content = {}
        levels: list[Any] = [None]
    else:
        levels = [content]
        for _ in range(DEEPEST):
            levels = [inner for one in levels for inner in _inside(one)]
    if levels:
        raise ValueError(f"tables and lists more than {DEEPEST} deep")
    return content


def _inside(value: Any) -> list[Any]:
    each = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [one for one in each if isinstance(one, dict | list)]
